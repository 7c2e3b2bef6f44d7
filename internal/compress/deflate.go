package compress

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/flate"
)

// MinSize is the minimum number of bytes to compress. Fewer bytes are stored uncompressed, because
// compressing them would not save a packet.
const MinSize = 256

// SyncMarker is the end of the result of [AppendDeflate]: the length of an empty stored block and
// its complement.
const SyncMarker = "\x00\x00\xff\xff"

// An appendWriter is a Writer that appends to a slice and never fails.
type appendWriter struct{ b []byte }

func (w *appendWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// deflaters holds the compressors of [AppendDeflate]. They use the fastest level. For objects of a
// few KiB, slower levels take two to four times as long and save 5 %.
var deflaters = newDeflaters(flate.BestSpeed)

func newDeflaters(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		d := new(SegmentDeflater)
		d.w, _ = flate.NewWriter(&d.out, level) // the level is valid
		return d
	}}
}

// AppendDeflate appends p as deflate blocks (RFC 1951) that do not refer to data before p. None of
// these blocks is marked as the final one. The result ends at a byte boundary with [SyncMarker].
func AppendDeflate(dst, p []byte) []byte {
	if len(p) < MinSize {
		return AppendStored(dst, p)
	}
	d := deflaters.Get().(*SegmentDeflater)
	defer deflaters.Put(d)
	d.Reset()
	return d.AppendFlushed(dst, p)
}

// AppendStored is like [AppendDeflate], but does not compress p.
func AppendStored(dst, p []byte) []byte {
	for len(p) > 0 {
		n := min(len(p), math.MaxUint16)
		dst = append(dst, 0) // not final, type 00, 5 unused bits: RFC 1951, section 3.2.4
		dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
		dst = binary.LittleEndian.AppendUint16(dst, ^uint16(n))
		dst = append(dst, p[:n]...)
		p = p[n:]
	}
	return append(append(dst, 0), SyncMarker...)
}

// finalBlock is an empty final block, after which a flate reader returns io.EOF.
const finalBlock = "\x01" + SyncMarker

// An inflater decompresses complete messages.
type inflater struct {
	in bytes.Reader
	z  io.Reader
}

var inflaters = sync.Pool{New: func() any { return &inflater{z: flate.NewReader(nil)} }}

// Inflate decompresses blocks, a result of [AppendDeflate], into dst. It stops after limit+1 bytes,
// so that the caller can detect a longer text. It may overwrite the memory between the length and
// the capacity of blocks. The blocks may refer to history, the text before them.
func Inflate(dst *bytes.Buffer, blocks, history []byte, limit int64) error {
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	f.in.Reset(append(blocks, finalBlock...))
	defer f.in.Reset(nil)
	_ = f.z.(flate.Resetter).Reset(&f.in, history) // always returns nil
	_, err := dst.ReadFrom(io.LimitReader(f.z, max(limit, limit+1)))
	return err
}

// segmentLevel is the level of a [SegmentDeflater]. With the history of a segment it saves a third
// more than the fastest level, for a quarter more CPU time. That is worth the cost, because each
// event is compressed once for all streams.
const segmentLevel = 6

// A SegmentDeflater compresses events whose blocks may refer to earlier events. It takes about a
// megabyte of memory. It is not safe for concurrent use.
type SegmentDeflater struct {
	w   *flate.Writer
	out appendWriter
}

var segmentDeflaters = newDeflaters(segmentLevel)

// GetSegmentDeflater returns a SegmentDeflater. Reset must be called before its first use.
func GetSegmentDeflater() *SegmentDeflater { return segmentDeflaters.Get().(*SegmentDeflater) }

// PutSegmentDeflater makes d available to other callers of GetSegmentDeflater.
func PutSegmentDeflater(d *SegmentDeflater) { segmentDeflaters.Put(d) }

// Reset discards the history, so that later blocks do not refer to earlier data.
func (d *SegmentDeflater) Reset() { d.w.Reset(&d.out) }

// AppendFlushed appends p like [AppendDeflate], but its blocks may refer to the data since Reset.
// Even short data must pass through the compressor, to become part of its history.
func (d *SegmentDeflater) AppendFlushed(dst, p []byte) []byte {
	d.out.b = dst
	_, _ = d.w.Write(p) // an appendWriter does not fail
	_ = d.w.Flush()
	dst, d.out.b = d.out.b, nil
	return dst
}
