package framing

import (
	"io"
	"math"
)

const (
	// bufferSize is how much of a stream is read ahead. Larger ones gain nothing measurable, and a client may hold many streams.
	bufferSize = 8 << 10
	// keptScratch is the largest scratch buffer that is kept from one event to the next.
	keptScratch = 64 << 10
)

// An input reads a stream through one buffer and counts the bytes of the event at hand, so that none has more than the limit.
type input struct {
	r     io.Reader // nil: buf is all there is
	buf   []byte    // what has been read; buf[pos:] is still to be taken
	pos   int
	err   error // what r failed with; due once buf is empty
	limit int   // bytes that one event may have
	used  int   // bytes of this event so far; zero: between two events
}

func newInput(r io.Reader, limit int) input {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return input{r: r, limit: limit}
}

// window returns the bytes that have been read and may still belong to the event at hand: at least one. It waits for more only
// if there is none. The bytes are good until the next call.
func (in *input) window() ([]byte, error) {
	if in.used >= in.limit {
		return nil, tooLarge(in.limit)
	}
	if in.pos == len(in.buf) {
		if err := in.fill(); err != nil {
			return nil, err
		}
	}
	w := in.buf[in.pos:]
	if most := in.limit - in.used; len(w) > most {
		w = w[:most]
	}
	return w, nil
}

// take moves past n bytes of the window, which belong to the event at hand.
func (in *input) take(n int) {
	in.pos += n
	in.used += n
}

// skip moves past n bytes of the window, which belong to no event.
func (in *input) skip(n int) { in.pos += n }

// next takes one byte.
func (in *input) next() (byte, error) {
	w, err := in.window()
	if err != nil {
		return 0, err
	}
	in.take(1)
	return w[0], nil
}

// appendBytes takes n bytes and appends them to dst, which grows with what has come and not with what was promised.
func (in *input) appendBytes(dst []byte, n uint64) ([]byte, error) {
	if n > uint64(in.limit-in.used) {
		return dst, tooLarge(in.limit)
	}
	for n > 0 {
		w, err := in.window()
		if err != nil {
			return dst, err
		}
		w = w[:min(uint64(len(w)), n)]
		dst = append(dst, w...)
		in.take(len(w))
		n -= uint64(len(w))
	}
	return dst, nil
}

func (in *input) fill() error {
	if in.err != nil {
		return in.err
	}
	if in.r == nil {
		return io.EOF
	}
	if in.buf == nil {
		in.buf = make([]byte, 0, bufferSize)
	}
	in.pos = 0
	for range 100 {
		var n int
		n, in.err = in.r.Read(in.buf[:cap(in.buf)])
		in.buf = in.buf[:n]
		if n > 0 {
			return nil
		}
		if in.err != nil {
			return in.err
		}
	}
	in.err = io.ErrNoProgress
	return in.err
}

// An eventReader reads the events of one framing. It returns the errors of in as they are.
type eventReader interface {
	readEvent(in *input) (WatchEvent, error)
}

// A decoder is the Decoder of every framing: it tells a clean end from a cut and keeps the first error.
type decoder struct {
	in     input
	events eventReader
	err    error
}

func newDecoder(r io.Reader, limit int, events eventReader) *decoder {
	return &decoder{in: newInput(r, limit), events: events}
}

// Decode implements [Decoder].
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

// decodeMessage reads a message with the reader of a stream: one event and nothing else, and returns what follows the event.
func decodeMessage(message []byte, events eventReader) (e WatchEvent, rest []byte, err error) {
	d := decoder{in: input{buf: message, limit: math.MaxInt}, events: events}
	if e, err = d.Decode(); err == io.EOF {
		err = corrupt("the message is empty", io.ErrUnexpectedEOF)
	}
	return e, message[d.in.pos:], err
}

func noRest(e WatchEvent, rest []byte, err error) (WatchEvent, error) {
	if err == nil && len(rest) > 0 {
		err = corrupt("the message goes on after its event: "+excerpt(rest), nil)
	}
	if err != nil {
		return WatchEvent{}, err
	}
	return e, nil
}
