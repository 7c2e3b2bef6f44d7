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
	// zstdWindow is that of what is written: events are smaller, and a compressor keeps as much.
	zstdWindow = 1 << 20
	// maxZstdWindow is the largest that is read, and that anybody may send as a content coding: RFC 9659.
	maxZstdWindow = 8 << 20
)

// zstdWriters are compressors of streams though all they get is one event: EncodeAll has a channel inside, and a channel that is made
// within a synctest bubble is of no use outside it.
var zstdWriters = sync.Pool{New: func() any {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("coding: " + err.Error()) // the options are constants
	}
	return &zstdWriter{w: w}
}}

type zstdWriter struct {
	w   *zstd.Encoder
	out sink
}

// AppendZstd appends p as a frame.
func AppendZstd(dst, p []byte) []byte {
	if len(p) < MinSize {
		return appendRawFrame(dst, p)
	}
	z := zstdWriters.Get().(*zstdWriter)
	z.out.b = dst
	z.w.Reset(&z.out)
	_, _ = z.w.Write(p) // a sink takes everything
	_ = z.w.Close()
	dst, z.out.b = z.out.b, nil
	zstdWriters.Put(z)
	return dst
}

// appendRawFrame appends p, which has fewer than 256 bytes, as one raw block.
func appendRawFrame(dst, p []byte) []byte {
	const singleSegment = 1 << 5 // the size of the content is one byte, and there is no window: RFC 8878, section 3.1.1.1
	dst = binary.LittleEndian.AppendUint32(dst, zstdMagic)
	dst = append(dst, singleSegment, byte(len(p)))
	block := uint32(len(p))<<3 | 1 // raw, and the last: section 3.1.1.2
	dst = append(dst, byte(block), byte(block>>8), byte(block>>16))
	return append(dst, p...)
}

// frames reads zstd frames, one after another.
type frames struct {
	zstd *zstd.Decoder
	c    *Reader
}

// Read takes the beginning of a magic number for what it is: the decoder takes it for the end.
func (f frames) Read(p []byte) (int, error) {
	n, err := f.zstd.Read(p)
	if rest := f.c.decoded() - f.c.settled; n == 0 && errors.Is(err, io.EOF) && rest > 0 && rest < 4 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// newZstd returns a decoder that takes memory for one window, and no goroutine.
func newZstd(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
}
