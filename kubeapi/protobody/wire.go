package protobody

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The wire format is specified in "Encoding" of Protocol Buffers
// (https://protobuf.dev/programming-guides/encoding/).

// A wireType determines the length of a record. Groups (3 and 4) are not supported, because
// Kubernetes does not use them.
type wireType byte

const (
	wireVarint  wireType = 0
	wireFixed64 wireType = 1
	wireBytes   wireType = 2
	wireFixed32 wireType = 5
)

// A record is one value on the wire.
type record struct {
	number uint64 // field number
	wire   wireType
	varint uint64 // for wireVarint
	data   []byte // for wireBytes; shares memory with the input
	fixed  bool   // true if the value of a fixed type is not zero
}

var errTruncated = errors.New("ends within a field")

// readRecord parses the first record of data and returns the rest.
func readRecord(data []byte) (record, []byte, error) {
	key, rest, err := readVarint(data)
	if err != nil {
		return record{}, nil, err
	}
	r := record{number: key >> 3, wire: wireType(key & 7)}
	const limit = 1<<29 - 1
	if r.number == 0 || r.number > limit {
		return record{}, nil, fmt.Errorf("has the invalid field number %d", r.number)
	}
	switch r.wire {
	case wireVarint:
		r.varint, rest, err = readVarint(rest)
	case wireBytes:
		var n uint64
		if n, rest, err = readVarint(rest); err == nil {
			r.data, rest, err = split(rest, n)
		}
	case wireFixed64, wireFixed32:
		n := uint64(8)
		if r.wire == wireFixed32 {
			n = 4
		}
		var bits []byte
		bits, rest, err = split(rest, n)
		for _, b := range bits {
			r.fixed = r.fixed || b != 0
		}
	default:
		err = fmt.Errorf("field %d has wire type %d", r.number, r.wire)
	}
	return r, rest, err
}

// isZero reports whether r holds the zero value.
func (r record) isZero() bool { return r.varint == 0 && len(r.data) == 0 && !r.fixed }

func readVarint(data []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(data)
	switch {
	case size == 0:
		return 0, nil, errTruncated
	case size < 0:
		return 0, nil, errors.New("has a number with more than 64 bits")
	}
	return n, data[size:], nil
}

func split(data []byte, n uint64) (first, rest []byte, err error) {
	if n > uint64(len(data)) {
		return nil, nil, errTruncated
	}
	return data[:n:n], data[n:], nil
}
