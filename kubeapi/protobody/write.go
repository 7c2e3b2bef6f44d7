package protobody

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// maxDepth bounds how deep messages may nest; no object of Kubernetes comes near.
const maxDepth = 64

// ErrTooLarge is the error of an object that is larger in JSON than it may be.
var ErrTooLarge = errors.New("more JSON than the limit")

// A writer writes messages as JSON. It reads each of them once for all fields and then once more for each field that is there, from
// the first to the last of its records: nothing is kept of a message meanwhile, whatever a hostile one has in it.
type writer struct {
	out   []byte
	limit int64
	depth int
}

// object writes what is in e, an m.
func (w *writer) object(m *message, e envelope) error {
	w.out = append(w.out, `{"kind":`...)
	w.out = rawjson.AppendString(w.out, e.kind)
	w.out = append(w.out, `,"apiVersion":`...)
	w.out = rawjson.AppendString(w.out, e.apiVersion)
	if err := w.members(m, e.raw); err != nil {
		return err
	}
	w.out = append(w.out, '}')
	return w.bounded()
}

func (w *writer) bounded() error {
	if int64(len(w.out)) > w.limit {
		return ErrTooLarge
	}
	return nil
}

// members writes the fields of m, in the order of the table.
func (w *writer) members(m *message, data []byte) error {
	if w.depth++; w.depth > maxDepth {
		return fmt.Errorf("nested deeper than %d messages", maxDepth)
	}
	defer func() { w.depth-- }()
	places, err := m.find(data)
	if err != nil {
		return err
	}
	for i := range m.fields {
		f := &m.fields[i]
		if err := w.field(f, places[i].Of(data)); err != nil {
			return f.located(err)
		}
	}
	return nil
}

func (f *field) located(err error) error {
	if f.name == "" || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// field writes the member that f is, unless it is to be left out.
func (w *writer) field(f *field, data []byte) error {
	switch f.shape {
	case shapeList:
		return w.list(f, data)
	case shapeMap:
		return w.dict(f, data)
	}
	value, ok, err := f.one(data)
	if err != nil {
		return err
	}
	if f.name == "" {
		return w.members(f.message, value.data)
	}
	if !ok && (f.shape == shapeOptional || f.scalar == scalarBytes) {
		w.none(f)
		return nil
	}
	if f.shape == shapeOne && f.leavesOut(value) {
		return nil
	}
	w.name(f.name)
	return w.value(f, value)
}

// leavesOut reports whether encoding/json leaves out f where it is value.
func (f *field) leavesOut(value record) bool {
	switch {
	case f.absence == omitNever:
		return false
	case f.absence == omitZero:
		return len(value.data) == 0
	}
	return f.scalar.isPlain() && value.isZero() // a struct in Go is never empty
}

// none writes a field that has no value at all.
func (w *writer) none(f *field) {
	if f.absence == omitNever {
		w.name(f.name)
		w.out = append(w.out, "null"...)
	}
}

// name begins a member.
func (w *writer) name(s string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(rawjson.AppendString(w.out, s), ':')
}

// value writes one value of f.
func (w *writer) value(f *field, value record) error {
	if err := w.bounded(); err != nil {
		return err
	}
	if f.message == nil {
		return w.scalar(f.scalar, value)
	}
	w.out = append(w.out, '{')
	err := w.members(f.message, value.data)
	w.out = append(w.out, '}')
	return err
}

func (w *writer) list(f *field, data []byte) error {
	start := len(w.out)
	w.name(f.name)
	n, err := w.elements(f, data)
	if n == 0 {
		w.out = w.out[:start]
		w.none(f)
	}
	return err
}

// elements writes a list, and returns how many values there are in it.
func (w *writer) elements(f *field, data []byte) (n int, err error) {
	element := func(r record) error {
		if n++; n > 1 {
			w.out = append(w.out, ',')
		}
		return w.value(f, r)
	}
	w.out = append(w.out, '[')
	err = f.each(data, func(r record) error {
		if r.wire == f.wire() {
			return element(r)
		}
		return unpack(r.data, element)
	})
	w.out = append(w.out, ']')
	return n, err
}

// dict writes a map in the order of its keys. Of entries with one key the last counts.
func (w *writer) dict(f *field, data []byte) error {
	if len(data) == 0 {
		w.none(f)
		return nil
	}
	values := map[string]record{}
	err := f.each(data, func(r record) error {
		places, err := f.entry.find(r.data)
		if err != nil {
			return err
		}
		key, _, err := f.entry.fields[0].one(places[0].Of(r.data))
		if err == nil {
			values[string(key.data)], _, err = f.entry.fields[1].one(places[1].Of(r.data))
		}
		return err
	})
	if err != nil {
		return err
	}
	w.name(f.name)
	w.out = append(w.out, '{')
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := checkText([]byte(key)); err != nil {
			return err
		}
		w.name(key)
		if err := w.value(&f.entry.fields[1], values[key]); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	w.out = append(w.out, '}')
	return nil
}
