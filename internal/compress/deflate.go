package compress

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Worth is from how many bytes on something is compressed. Below, it saves no packet: it is carried as it is.
const MinSize = 256

// SyncMarker is how the blocks of [AppendBlocks] end: the length of an empty stored block and its complement.
const SyncMarker = "\x00\x00\xff\xff"

// A sink is a Writer that appends.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// A deflater has the fastest level: on objects of some KiB the slower ones take two to four times as long for a twentieth less.
type deflater struct {
	w   *flate.Writer
	out sink
}

var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	d.w, _ = flate.NewWriter(&d.out, flate.BestSpeed) // the level is a valid one
	return d
}}

// AppendBlocks appends p as deflate blocks (RFC 1951), none of them final, that refer to nothing before p. They end at a byte's
// boundary with [SyncMarker].
func AppendDeflate(dst, p []byte) []byte {
	if len(p) < MinSize {
		return appendStored(dst, p)
	}
	d := deflaters.Get().(*deflater)
	d.out.b = dst
	d.w.Reset(&d.out)
	_, _ = d.w.Write(p) // a sink takes everything
	_ = d.w.Flush()
	dst, d.out.b = d.out.b, nil
	deflaters.Put(d)
	return dst
}

// appendStored appends p, which fits one block, as it is.
func appendStored(dst, p []byte) []byte {
	if len(p) > 0 {
		dst = append(dst, 0) // not final, type 00, and the rest of the byte unused: RFC 1951, section 3.2.4
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(p)))
		dst = binary.LittleEndian.AppendUint16(dst, ^uint16(len(p)))
		dst = append(dst, p...)
	}
	return append(append(dst, 0), SyncMarker...)
}
