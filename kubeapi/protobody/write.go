package protobody

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// maxDepth limits the nesting of messages. Kubernetes objects are not nested that deeply.
const maxDepth = 64

// ErrTooLarge is returned if the JSON would exceed the limit.
var ErrTooLarge = errors.New("the JSON exceeds the limit")

// A jsonWriter writes messages as JSON. It scans each message once to locate all fields, and
// then once for each field that is present. It needs no memory per message, so a hostile
// body cannot exhaust the memory.
type jsonWriter struct {
	out   []byte
	limit int64
	depth int
}

// object writes the object in e, whose schema is m.
func (w *jsonWriter) object(m *message, e envelope) error {
	w.out = append(w.out, `{"kind":`...)
	w.out = rawjson.AppendString(w.out, e.kind)
	w.out = append(w.out, `,"apiVersion":`...)
	w.out = rawjson.AppendString(w.out, e.apiVersion)
	if err := w.members(m, e.raw); err != nil {
		return err
	}
	w.out = append(w.out, '}')
	return w.checkSize()
}

func (w *jsonWriter) checkSize() error {
	if int64(len(w.out)) > w.limit {
		return ErrTooLarge
	}
	return nil
}

// members writes the fields of m in the order in which m declares them.
func (w *jsonWriter) members(m *message, data []byte) error {
	if w.depth++; w.depth > maxDepth {
		return fmt.Errorf("nested deeper than %d messages", maxDepth)
	}
	defer func() { w.depth-- }()
	places, err := m.locate(data)
	if err != nil {
		return err
	}
	for i := range m.fields {
		f := &m.fields[i]
		if err := w.field(f, places[i].Of(data)); err != nil {
			return f.errorAt(err)
		}
	}
	return nil
}

func (f *field) errorAt(err error) error {
	if f.name == "" || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// field writes the member for f, unless it is omitted.
func (w *jsonWriter) field(f *field, data []byte) error {
	switch f.cardinality {
	case repeated:
		return w.list(f, data)
	case mapped:
		return w.stringMap(f, data)
	}
	value, ok, err := f.value(data)
	if err != nil {
		return err
	}
	if f.name == "" {
		return w.members(f.message, value.data)
	}
	if !ok && (f.cardinality == optional || f.scalar == scalarBytes) {
		w.emptyMember(f)
		return nil
	}
	if f.cardinality == single && f.omits(value) {
		return nil
	}
	w.memberName(f.name)
	return w.value(f, value)
}

// omits reports whether encoding/json omits a member with this value.
func (f *field) omits(value record) bool {
	switch {
	case f.omit == omitNever:
		return false
	case f.omit == omitZero:
		return len(value.data) == 0
	}
	return f.scalar.isPlain() && value.isZero() // encoding/json never considers a struct empty
}

// emptyMember writes null for a field that has no value, unless its member is omitted.
func (w *jsonWriter) emptyMember(f *field) {
	if f.omit == omitNever {
		w.memberName(f.name)
		w.out = append(w.out, "null"...)
	}
}

// memberName writes the name of the next member, a comma before it if needed, and a colon.
func (w *jsonWriter) memberName(s string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(rawjson.AppendString(w.out, s), ':')
}

// value writes one value of f.
func (w *jsonWriter) value(f *field, value record) error {
	if err := w.checkSize(); err != nil {
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

func (w *jsonWriter) list(f *field, data []byte) error {
	start := len(w.out)
	w.memberName(f.name)
	n, err := w.elements(f, data)
	if n == 0 {
		w.out = w.out[:start]
		w.emptyMember(f)
	}
	return err
}

// elements writes a list and returns the number of its elements.
func (w *jsonWriter) elements(f *field, data []byte) (n int, err error) {
	element := func(r record) error {
		if n++; n > 1 {
			w.out = append(w.out, ',')
		}
		return w.value(f, r)
	}
	w.out = append(w.out, '[')
	err = f.eachRecord(data, func(r record) error {
		if r.wire == f.wire() {
			return element(r)
		}
		return eachPacked(r.data, element)
	})
	w.out = append(w.out, ']')
	return n, err
}

// stringMap writes a map in the order of its keys. If two entries have the same key, the
// last one is used.
func (w *jsonWriter) stringMap(f *field, data []byte) error {
	if len(data) == 0 {
		w.emptyMember(f)
		return nil
	}
	values := map[string]record{}
	err := f.eachRecord(data, func(r record) error {
		places, err := f.entry.locate(r.data)
		if err != nil {
			return err
		}
		key, _, err := f.entry.fields[0].value(places[0].Of(r.data))
		if err == nil {
			values[string(key.data)], _, err = f.entry.fields[1].value(places[1].Of(r.data))
		}
		return err
	})
	if err != nil {
		return err
	}
	w.memberName(f.name)
	w.out = append(w.out, '{')
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := checkText([]byte(key)); err != nil {
			return err
		}
		w.memberName(key)
		if err := w.value(&f.entry.fields[1], values[key]); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	w.out = append(w.out, '}')
	return nil
}
