package framing

import (
	"io"
	"math"
	"sync"
)

const (
	// bufferSize is the size of the read buffer of an idle stream. It is small, because a client
	// may have many of them.
	bufferSize = 8 << 10
	// partSize is the size of the read buffer after a read of at least bufferSize. The events of a
	// read become one batch, and an informer that receives larger batches wakes its goroutines less
	// often.
	partSize = 32 << 10
	// burstSize is the size of the read buffer after a read that has filled it, because more bytes
	// have probably arrived. An HTTP/2 client opens its window with each read, and larger reads
	// save the server most of these frames.
	burstSize = 64 << 10
	// maxKeptBuffer is the size of the largest buffer that is reused for the next event.
	maxKeptBuffer = 64 << 10
)

// parts and bursts hold the buffers of partSize and burstSize that no stream uses.
var (
	parts  = sync.Pool{New: func() any { return new([partSize]byte) }}
	bursts = sync.Pool{New: func() any { return new([burstSize]byte) }}
)

// An input reads a stream through a buffer, and limits the size of each event.
type input struct {
	r     io.Reader // nil if buf is the whole input
	buf   []byte    // buf[pos:] is unread
	pos   int
	err   error // the error of r, returned when buf is empty
	limit int   // the maximum number of bytes of an event
	used  int   // the bytes of the current event so far; zero between two events
}

func newInput(r io.Reader, limit int) input {
	return input{r: r, limit: LimitOrDefault(limit)}
}

// available returns the buffered bytes that may belong to the current event, at least one.
// It reads from the stream only if the buffer is empty. The bytes are valid until the next
// call.
func (i *input) available() ([]byte, error) {
	if i.used >= i.limit {
		return nil, tooLarge(i.limit)
	}
	if i.pos == len(i.buf) {
		if err := i.fill(); err != nil {
			return nil, err
		}
	}
	w := i.buf[i.pos:]
	if most := i.limit - i.used; len(w) > most {
		w = w[:most]
	}
	return w, nil
}

// take consumes n available bytes of the current event.
func (i *input) take(n int) {
	i.pos += n
	i.used += n
}

// untake undoes take for the last n bytes. They must still be in the buffer, so available must not
// have been called since they were taken.
func (i *input) untake(n int) {
	i.pos -= n
	i.used -= n
}

// skip consumes n available bytes that do not belong to an event.
func (i *input) skip(n int) { i.pos += n }

// next consumes one byte of the current event.
func (i *input) next() (byte, error) {
	w, err := i.available()
	if err != nil {
		return 0, err
	}
	i.take(1)
	return w[0], nil
}

// appendBytes consumes n bytes and appends them to dst. It grows dst as bytes arrive,
// because n may be too large to allocate at once.
func (i *input) appendBytes(dst []byte, n uint64) ([]byte, error) {
	if n > uint64(i.limit-i.used) {
		return dst, tooLarge(i.limit)
	}
	for n > 0 {
		w, err := i.available()
		if err != nil {
			return dst, err
		}
		w = w[:min(uint64(len(w)), n)]
		dst = append(dst, w...)
		i.take(len(w))
		n -= uint64(len(w))
	}
	return dst, nil
}

func (i *input) fill() error {
	if i.err != nil {
		return i.err
	}
	if i.r == nil {
		return io.EOF
	}
	i.resize()
	i.pos = 0
	for range 100 {
		var n int
		n, i.err = i.r.Read(i.buf[:cap(i.buf)])
		i.buf = i.buf[:n]
		if n > 0 {
			return nil
		}
		if i.err != nil {
			return i.err
		}
	}
	i.err = io.ErrNoProgress
	return i.err
}

// resize replaces the read buffer, which has no unread bytes, if the last read shows that another
// size is better.
func (i *input) resize() {
	size := bufferSize
	switch n := len(i.buf); {
	case n > 0 && n == cap(i.buf):
		size = burstSize
	case n >= bufferSize:
		size = partSize
	}
	if cap(i.buf) == size {
		return
	}
	switch cap(i.buf) {
	case partSize:
		parts.Put((*[partSize]byte)(i.buf[:partSize]))
	case burstSize:
		bursts.Put((*[burstSize]byte)(i.buf[:burstSize]))
	}
	switch size {
	case partSize:
		i.buf = parts.Get().(*[partSize]byte)[:0]
	case burstSize:
		i.buf = bursts.Get().(*[burstSize]byte)[:0]
	default:
		i.buf = make([]byte, 0, size)
	}
}

// An eventReader reads the events of one framing. It returns the errors of the input unchanged.
type eventReader interface {
	readEvent(in *input) (WatchEvent, error)
	// mayHaveEvent reports whether p may begin with a complete event. It is a fast check.
	mayHaveEvent(p []byte) bool
}

// A decoder is the [Decoder] of all framings. It detects a truncated event and keeps the first
// error.
type decoder struct {
	in     input
	events eventReader
	err    error
}

func newDecoder(r io.Reader, limit int, events eventReader) *decoder {
	return &decoder{in: newInput(r, limit), events: events}
}

func (d *decoder) Decode() (WatchEvent, error) {
	if d.err != nil {
		return WatchEvent{}, d.err
	}
	d.in.used = 0
	e, err := d.events.readEvent(&d.in)
	if err != nil {
		if err == io.EOF && d.in.used > 0 {
			err = truncated()
		}
		d.err = err
		return WatchEvent{}, err
	}
	return e, nil
}

// Buffered implements [Buffered]. It decodes without reading from the stream. If the buffered bytes
// are no complete event, or an invalid one, it restores the input, and the next Decode reads the
// same bytes again.
func (d *decoder) Buffered() (e WatchEvent, ok bool) {
	if d.err != nil || !d.events.mayHaveEvent(d.in.buf[d.in.pos:]) {
		return WatchEvent{}, false
	}
	before := d.in
	d.in.r, d.in.err, d.in.used = nil, nil, 0
	e, err := d.events.readEvent(&d.in)
	if err != nil {
		d.in = before
		return WatchEvent{}, false
	}
	d.in.r, d.in.err = before.r, before.err
	return e, true
}

// decodeMessage decodes one event from message, and returns the rest of the message.
func decodeMessage(message []byte, events eventReader) (e WatchEvent, rest []byte, err error) {
	d := decoder{in: input{buf: message, limit: math.MaxInt}, events: events}
	if e, err = d.Decode(); err == io.EOF {
		err = corrupt("the message is empty", io.ErrUnexpectedEOF)
	}
	return e, message[d.in.pos:], err
}

// rejectRest returns an error if a message has bytes after its event.
func rejectRest(e WatchEvent, rest []byte, err error) (WatchEvent, error) {
	if err == nil && len(rest) > 0 {
		err = corrupt("unexpected data after the event of the message: "+excerpt(rest), nil)
	}
	if err != nil {
		return WatchEvent{}, err
	}
	return e, nil
}
