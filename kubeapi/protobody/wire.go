package protobody

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The wire format is that of Protocol Buffers, "Encoding" (https://protobuf.dev/programming-guides/encoding/).

// A wireType says how long a record is. Groups, 3 and 4, are not read: Kubernetes has none.
type wireType byte

const (
	wireVarint  wireType = 0
	wireFixed64 wireType = 1
	wireBytes   wireType = 2
	wireFixed32 wireType = 5
)

// A record is one value on the wire.
type record struct {
	number uint64 // of the field
	wire   wireType
	varint uint64 // of a wireVarint
	data   []byte // of a wireBytes; part of what was read
	fixed  bool   // of a wireFixed: there is a bit that is not 0
}

var errCut = errors.New("ends within a field")

// next reads the record that data begins with, and returns what comes after it.
func next(data []byte) (record, []byte, error) {
	key, rest, err := readVarint(data)
	if err != nil {
		return record{}, nil, err
	}
	r := record{number: key >> 3, wire: wireType(key & 7)}
	const most = 1<<29 - 1
	if r.number == 0 || r.number > most {
		return record{}, nil, fmt.Errorf("has a field numbered %d", r.number)
	}
	switch r.wire {
	case wireVarint:
		r.varint, rest, err = readVarint(rest)
	case wireBytes:
		var n uint64
		if n, rest, err = readVarint(rest); err == nil {
			r.data, rest, err = cut(rest, n)
		}
	case wireFixed64, wireFixed32:
		n := uint64(8)
		if r.wire == wireFixed32 {
			n = 4
		}
		var bits []byte
		bits, rest, err = cut(rest, n)
		for _, b := range bits {
			r.fixed = r.fixed || b != 0
		}
	default:
		err = fmt.Errorf("field %d has wire type %d", r.number, r.wire)
	}
	return r, rest, err
}

// isZero reports whether r is what is written for a field that is not set.
func (r record) isZero() bool { return r.varint == 0 && len(r.data) == 0 && !r.fixed }

func readVarint(data []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(data)
	switch {
	case size == 0:
		return 0, nil, errCut
	case size < 0:
		return 0, nil, errors.New("has a number of more than 64 bits")
	}
	return n, data[size:], nil
}

func cut(data []byte, n uint64) (first, rest []byte, err error) {
	if n > uint64(len(data)) {
		return nil, nil, errCut
	}
	return data[:n:n], data[n:], nil
}
