package loop

import (
	"encoding/binary"
	"sync"

	"golang.org/x/net/http2"
)

const (
	// outputSize is the number of bytes at which the output is written before more data is added.
	outputSize = 128 << 10
	// maxOutput is the number of bytes at which the reader waits for the writer. Only heads and
	// frames without data exceed outputSize.
	maxOutput = 2 * outputSize
	// largeFrame is the size from which a shared frame is written without a copy. Smaller frames
	// are copied, because that is cheaper than one more element of writev.
	largeFrame = 8 << 10
	headerLen  = 9 // the header of a frame
)

// An output holds the frames of the next write. The zero value is empty. Its buffer comes from a
// pool, so that an idle connection holds none.
type output struct {
	buf  []byte
	refs []reference
	size int // all bytes, including the bytes in refs and resets
	// resets holds the RST_STREAM frames of the write after the next one.
	resets []byte
}

// A reference is a slice that is written between two parts of the buffer.
type reference struct {
	at int // the position in the buffer
	p  []byte
}

var buffers = sync.Pool{New: func() any { return new([outputSize + 4<<10]byte) }}

// bufferSize is the number of bytes that are collected before they are sent.
const bufferSize = 4 << 10

var responseBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func (o *output) isEmpty() bool { return o.size == 0 }

// room returns the number of bytes that may be added before the next write.
func (o *output) room() int { return outputSize - o.size }

// frame adds the header of a frame whose payload of n bytes follows.
func (o *output) frame(n int, kind http2.FrameType, flags http2.Flags, stream uint32) {
	o.grow()
	o.buf = append(o.buf, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	o.buf = binary.BigEndian.AppendUint32(o.buf, stream)
	o.size += headerLen
}

func (o *output) uint32(v uint32) {
	o.buf = binary.BigEndian.AppendUint32(o.buf, v)
	o.size += 4
}

// copy adds a copy of p.
func (o *output) copy(p []byte) {
	o.grow()
	o.buf = append(o.buf, p...)
	o.size += len(p)
}

// reference adds p, which must not change until it has been written.
func (o *output) reference(p []byte) {
	o.refs = append(o.refs, reference{len(o.buf), p})
	o.size += len(p)
}

func (o *output) grow() {
	if o.buf == nil {
		o.buf = buffers.Get().(*[outputSize + 4<<10]byte)[:0]
	}
}

// vectors returns the output as slices for writev.
func (o *output) vectors() [][]byte {
	var all [][]byte
	from := 0
	for _, r := range o.refs {
		all = append(all, o.buf[from:r.at], r.p)
		from = r.at
	}
	return append(all, o.buf[from:])
}

// release returns the buffer to the pool.
func (o *output) release() {
	if cap(o.buf) == outputSize+4<<10 {
		buffers.Put((*[outputSize + 4<<10]byte)(o.buf[:cap(o.buf)]))
	}
	*o = output{}
}

func (o *output) settings(list []http2.Setting) {
	o.frame(6*len(list), http2.FrameSettings, 0, 0)
	for _, s := range list {
		o.buf = binary.BigEndian.AppendUint16(o.buf, uint16(s.ID))
		o.size += 2
		o.uint32(s.Val)
	}
}

func (o *output) ping(ack bool, data [8]byte) {
	var flags http2.Flags
	if ack {
		flags = http2.FlagPingAck
	}
	o.frame(len(data), http2.FramePing, flags, 0)
	o.copy(data[:])
}

// reset adds RST_STREAM. It is written after the frames that precede it and not together with them,
// because curl drops the part of a response that it reads together with the reset.
func (o *output) reset(stream uint32, code http2.ErrCode) {
	if o.size > 0 {
		o.resets = append(o.resets, 0, 0, 4, byte(http2.FrameRSTStream), 0)
		o.resets = binary.BigEndian.AppendUint32(o.resets, stream)
		o.resets = binary.BigEndian.AppendUint32(o.resets, uint32(code))
		o.size += headerLen + 4
		return
	}
	o.frame(4, http2.FrameRSTStream, 0, stream)
	o.uint32(uint32(code))
}

// next removes and returns the frames of the next write, without the resets. These become the first
// frames of the write after it.
func (o *output) next() output {
	now := *o
	*o = output{}
	if len(now.resets) > 0 {
		o.copy(now.resets)
		now.resets = nil
	}
	return now
}

func (o *output) windowUpdate(stream, n uint32) {
	o.frame(4, http2.FrameWindowUpdate, 0, stream)
	o.uint32(n)
}

func (o *output) goAway(last uint32, code http2.ErrCode, debug string) {
	o.frame(8+len(debug), http2.FrameGoAway, 0, 0)
	o.uint32(last)
	o.uint32(uint32(code))
	o.copy([]byte(debug))
}

// headers adds a header block as HEADERS, followed by CONTINUATION frames if it is longer than
// frameSize.
func (o *output) headers(stream uint32, block []byte, end bool, frameSize int) {
	kind := http2.FrameHeaders
	var flags http2.Flags
	if end {
		flags = http2.FlagHeadersEndStream
	}
	for {
		n := min(len(block), frameSize)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders // CONTINUATION has the same flag
		}
		o.frame(n, kind, flags, stream)
		o.copy(block[:n])
		if block = block[n:]; len(block) == 0 {
			return
		}
		kind, flags = http2.FrameContinuation, 0
	}
}
