package protobody

import (
	"fmt"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// find returns, for each field of m, the piece of data from the first record that counts to its last; among these may be some of other
// fields.
func (m *message) find(data []byte) ([]rawjson.Span, error) {
	places := make([]rawjson.Span, len(m.fields))
	for rest := data; len(rest) > 0; {
		start := len(data) - len(rest)
		r, after, err := next(rest)
		if err != nil {
			return nil, err
		}
		rest = after
		i, ok := m.byNumber[r.number]
		switch {
		case !ok && r.isZero():
			continue
		case !ok:
			return nil, &unknownFieldError{m.name, r.number}
		case r.wire != m.fields[i].wire() && !(r.wire == wireBytes && m.fields[i].shape == shapeList):
			return nil, fmt.Errorf("field %d has wire type %d", r.number, r.wire)
		}
		if places[i].Empty() || m.fields[i].lastCounts() {
			places[i].Start = start
		}
		places[i].End = len(data) - len(rest)
	}
	return places, nil
}

// An unknownFieldError tells of a value that would be lost.
type unknownFieldError struct {
	message string
	number  uint64
}

func (e *unknownFieldError) Error() string {
	return fmt.Sprintf("%s has no field %d that is known here", e.message, e.number)
}

// wire returns how the values of f are written; of f, where it is a map, the entries.
func (f *field) wire() wireType {
	if f.message != nil || f.shape == shapeMap {
		return wireBytes
	}
	return f.scalar.wire()
}

// each calls do with each record of f in data, which find has read before.
func (f *field) each(data []byte, do func(record) error) error {
	for len(data) > 0 {
		r, rest, err := next(data)
		if err == nil && r.number == f.number {
			err = do(r)
		}
		if err != nil {
			return err
		}
		data = rest
	}
	return nil
}

// lastCounts reports whether f has one value, which is that of its last record; messages are put together from all.
func (f *field) lastCounts() bool {
	return (f.shape == shapeOne || f.shape == shapeOptional) && f.scalar.isPlain()
}

// one returns the value of a field that has one.
func (f *field) one(data []byte) (value record, ok bool, err error) {
	err = f.each(data, func(r record) error {
		if ok {
			r.data = append(value.data, r.data...) // a copy, for what next returns can't grow
		}
		value, ok = r, true
		return nil
	})
	return value, ok, err
}

// values returns the one value of each field of m; what is not there is zero.
func (m *message) values(data []byte) ([]record, error) {
	places, err := m.find(data)
	if err != nil {
		return nil, err
	}
	values := make([]record, len(m.fields))
	for i := range values {
		if values[i], _, err = m.fields[i].one(places[i].Of(data)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// unpack calls do with each number of a list that is packed into one record.
func unpack(data []byte, do func(record) error) error {
	for len(data) > 0 {
		n, rest, err := readVarint(data)
		if err == nil {
			err = do(record{varint: n})
		}
		if err != nil {
			return err
		}
		data = rest
	}
	return nil
}
