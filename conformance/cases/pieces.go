package cases

import (
	"bytes"
	"context"
	"io"
	"net"
)

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// wrapDial returns dial with connections that change prepares.
func wrapDial(dial dialFunc, change func(*piecewise)) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		p := &piecewise{Conn: c}
		change(p)
		return p, nil
	}
}

// A piecewise connection is one whose reads are cut otherwise than the network did. It has one reader.
type piecewise struct {
	net.Conn
	next func(read int) int // how many bytes a read may bring, given how many came before; nil: any
	saw  io.Writer          // is told what was read; nil: nobody
	held *holding           // nil: nothing is held back
	read int
}

// Read reads as much as next says.
func (c *piecewise) Read(p []byte) (int, error) {
	if c.next != nil {
		p = p[:min(len(p), c.next(c.read))]
	}
	var n int
	var err error
	if c.held != nil {
		n, err = c.held.readFrom(c.Conn, p)
	} else {
		n, err = c.Conn.Read(p)
	}
	if c.saw != nil {
		_, _ = c.saw.Write(p[:n])
	}
	c.read += n
	return n, err
}

// holding holds back what comes, from the first event on, until it is enough, so that what was written in many pieces comes in one.
type holding struct {
	enough int

	begun bool
	buf   []byte
}

func (h *holding) readFrom(c net.Conn, p []byte) (int, error) {
	if !h.begun {
		n, err := c.Read(p)
		h.begun = bytes.Contains(p[:n], []byte(`{"type"`))
		return n, err
	}
	for h.enough > 0 {
		more := make([]byte, h.enough)
		n, err := c.Read(more)
		if err != nil {
			return 0, err
		}
		h.buf = append(h.buf, more[:n]...)
		h.enough -= n
	}
	if len(h.buf) == 0 {
		return c.Read(p)
	}
	n := copy(p, h.buf)
	h.buf = h.buf[n:]
	return n, nil
}
