package compress

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	zstdMagic = 0xFD2FB528
	// zstdWindow is the window size of the compressors. It is small because each compressor
	// allocates a window, and most events are smaller.
	zstdWindow = 1 << 20
	// maxZstdWindow is the maximum window size of a content coding (RFC 9659).
	maxZstdWindow = 8 << 20
)

// zstdWriters holds stream compressors, although each use compresses a single event. The
// alternative, EncodeAll, creates a channel, and a channel that was created in a synctest
// bubble cannot be used outside of it.
var zstdWriters = sync.Pool{New: func() any {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("compress: " + err.Error()) // the options are constants
	}
	return &zstdWriter{w: w}
}}

type zstdWriter struct {
	w   *zstd.Encoder
	out appendWriter
}

// AppendZstd appends p as a zstd frame.
func AppendZstd(dst, p []byte) []byte {
	if len(p) < MinSize {
		return appendRawFrame(dst, p)
	}
	z := zstdWriters.Get().(*zstdWriter)
	z.out.b = dst
	z.w.Reset(&z.out)
	_, _ = z.w.Write(p) // an appendWriter does not fail
	_ = z.w.Close()
	dst, z.out.b = z.out.b, nil
	zstdWriters.Put(z)
	return dst
}

// appendRawFrame appends p as a zstd frame with one raw block. p must have fewer than 256 bytes.
func appendRawFrame(dst, p []byte) []byte {
	// The header has one byte of content size and no window descriptor: RFC 8878, section 3.1.1.1.
	const singleSegment = 1 << 5
	dst = binary.LittleEndian.AppendUint32(dst, zstdMagic)
	dst = append(dst, singleSegment, byte(len(p)))
	block := uint32(len(p))<<3 | 1 // a raw block, and the last one: section 3.1.1.2
	dst = append(dst, byte(block), byte(block>>8), byte(block>>16))
	return append(dst, p...)
}

// zstdFrames reads concatenated zstd frames.
type zstdFrames struct {
	zstd *zstd.Decoder
	c    *Reader
}

// Read returns io.ErrUnexpectedEOF if the stream ends within the magic number of a frame.
// The decoder would return io.EOF.
func (f zstdFrames) Read(p []byte) (int, error) {
	n, err := f.zstd.Read(p)
	if rest := f.c.decoded() - f.c.complete; n == 0 && errors.Is(err, io.EOF) && rest > 0 && rest < 4 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// newZstd returns a decoder that allocates a single window and starts no goroutine.
func newZstd(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxZstdWindow))
}
