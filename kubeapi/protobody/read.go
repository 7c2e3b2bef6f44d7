package protobody

import (
	"fmt"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// locate returns, for each field of m, the part of data from the field's first record to its
// last. If the last record replaces the earlier ones, the part contains only the last. A part
// may also contain records of other fields.
func (m *message) locate(data []byte) ([]rawjson.Span, error) {
	places := make([]rawjson.Span, len(m.fields))
	for rest := data; len(rest) > 0; {
		start := len(data) - len(rest)
		r, after, err := readRecord(rest)
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
		case r.wire != m.fields[i].wire() && !(r.wire == wireBytes && m.fields[i].cardinality == repeated):
			return nil, fmt.Errorf("field %d has wire type %d", r.number, r.wire)
		}
		if places[i].Empty() || m.fields[i].lastWins() {
			places[i].Start = start
		}
		places[i].End = len(data) - len(rest)
	}
	return places, nil
}

// An unknownFieldError reports a field that would be lost.
type unknownFieldError struct {
	message string
	number  uint64
}

func (e *unknownFieldError) Error() string {
	return fmt.Sprintf("field %[2]d of %[1]s is unknown", e.message, e.number)
}

// wire returns the wire type of the field's values, or of its entries if it is a map.
func (f *field) wire() wireType {
	if f.message != nil || f.cardinality == mapped {
		return wireBytes
	}
	return f.scalar.wire()
}

// eachRecord calls the function do with each record of f in data, which locate has validated.
func (f *field) eachRecord(data []byte, do func(record) error) error {
	for len(data) > 0 {
		r, rest, err := readRecord(data)
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

// lastWins reports whether the last record of f replaces the earlier ones. Messages are
// merged from all records instead.
func (f *field) lastWins() bool {
	return (f.cardinality == single || f.cardinality == optional) && f.scalar.isPlain()
}

// value returns the value of a field that is not repeated.
func (f *field) value(data []byte) (value record, ok bool, err error) {
	err = f.eachRecord(data, func(r record) error {
		if ok {
			// append never overwrites data, because readRecord limits the capacity.
			r.data = append(value.data, r.data...)
		}
		value, ok = r, true
		return nil
	})
	return value, ok, err
}

// values returns the value of each field of m, which is zero if the field is missing.
func (m *message) values(data []byte) ([]record, error) {
	places, err := m.locate(data)
	if err != nil {
		return nil, err
	}
	values := make([]record, len(m.fields))
	for i := range values {
		if values[i], _, err = m.fields[i].value(places[i].Of(data)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// eachPacked calls the function do with each number of a list that is packed into one record.
func eachPacked(data []byte, do func(record) error) error {
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
