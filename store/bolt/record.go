package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/listwatch/listwatch"
)

// A record is one write as stored in the file, under its version. The newest record of a key holds
// the current object, unless the record is a delete.
//
//	kind       1 byte: recordPut or recordDelete
//	at         8 bytes, big endian: the time of the write in nanoseconds since 1970
//	previous   uvarint: the version of the object that the write replaced, or 0 if there was none
//	namespace  uvarint length, bytes
//	name       uvarint length, bytes
//	data       the object's JSON after the Transformer; empty for a delete
//	checksum   4 bytes, big endian: CRC-32C of the version (8 bytes) and all of the above
type record struct {
	deleted  bool
	at       int64
	previous listwatch.Version
	key      listwatch.Key
	data     []byte
}

// The kinds of records.
const (
	recordPut    = 1
	recordDelete = 2
)

const checksumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r record) appendTo(dst []byte, v listwatch.Version) []byte {
	start := len(dst)
	kind := byte(recordPut)
	if r.deleted {
		kind = recordDelete
	}
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.at))
	dst = binary.AppendUvarint(dst, uint64(r.previous))
	for _, s := range [...]string{r.key.Namespace, r.key.Name} {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	dst = append(dst, r.data...)
	return binary.BigEndian.AppendUint32(dst, checksum(v, dst[start:]))
}

func checksum(v listwatch.Version, data []byte) uint32 {
	key := keyOf(v)
	return crc32.Update(crc32.Checksum(key[:], castagnoli), castagnoli, data)
}

// parseRecord is the inverse of appendTo. The data of the record is a part of src and not a copy.
func parseRecord(src []byte, v listwatch.Version) (r record, err error) {
	end := len(src) - checksumBytes
	if end < 0 {
		return r, fmt.Errorf("%d bytes are too few for a record", len(src))
	}
	if want, got := binary.BigEndian.Uint32(src[end:]), checksum(v, src[:end]); want != got {
		return r, fmt.Errorf("its checksum is %08x, but its bytes have %08x", want, got)
	}
	p := parser{rest: src[:end]}
	kind := p.take(1)
	at := p.take(8)
	r.previous = listwatch.Version(p.uvarint())
	r.key.Namespace = string(p.take(p.uvarint()))
	r.key.Name = string(p.take(p.uvarint()))
	if p.failed {
		return r, fmt.Errorf("it is truncated")
	}
	r.at, r.data = int64(binary.BigEndian.Uint64(at)), p.rest
	switch kind[0] {
	case recordPut:
	case recordDelete:
		if r.deleted = true; len(r.data) > 0 {
			return r, fmt.Errorf("it is a delete with %d bytes of data", len(r.data))
		}
	default:
		return r, fmt.Errorf("its kind is %d, want 1 or 2", kind[0])
	}
	if r.previous >= v {
		return r, fmt.Errorf("the version %d that it replaced is not before its own", r.previous)
	}
	return r, nil
}

// A parser reads fields from rest. failed is set once a field is incomplete.
type parser struct {
	rest   []byte
	failed bool
}

func (p *parser) take(n uint64) []byte {
	if p.failed || n > uint64(len(p.rest)) {
		p.failed = true
		return nil
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *parser) uvarint() uint64 {
	x, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.failed = true
		return 0
	}
	p.rest = p.rest[n:]
	return x
}

// versionAt returns the version of o, or 0 if o is nil.
func versionAt(o *listwatch.Object) listwatch.Version {
	if o == nil {
		return 0
	}
	return o.Version
}
