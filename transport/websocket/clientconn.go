package websocket

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

const (
	// closeFrameTimeout is the maximum time that a client takes to write a close frame.
	closeFrameTimeout = time.Second
	// clientBuffer is the size of the buffer for reading from the connection.
	clientBuffer = 4 << 10
)

// A clientConn is the client's end of a WebSocket. It reads and writes through the body of the
// response, which may have read ahead and implements TLS. It sets deadlines on the connection that
// was dialed. It closes this connection without a TLS alert: an alert could block, and the server
// already knows from the close frame that the connection ends.
type clientConn struct {
	// Immutable after construction.
	conn    net.Conn
	body    io.ReadWriteCloser
	request *wswatch.Request
	// keepsHistory is true if a compressed message may refer to earlier ones.
	keepsHistory bool

	// Owned by the caller of Next.
	frames  frameReader
	buffer  []byte
	rest    []byte // the part of buffer that was not parsed yet
	message bytes.Buffer
	plain   bytes.Buffer // the decompressed message
	history messageHistory

	writing chan struct{} // has an element while a frame is written
	// ended is true if a close frame was written or a write has failed. The goroutine that writes a
	// frame owns it.
	ended bool
}

// Next implements [wswatch.Conn].
func (c *clientConn) Next() (isBinary bool, message []byte, err error) {
	for _, b := range [...]*bytes.Buffer{&c.message, &c.plain} {
		if b.Cap() > wswatch.MaxScratch {
			*b = bytes.Buffer{}
		}
		b.Reset()
	}
	for {
		p, err := c.nextPart()
		if err != nil {
			return false, nil, err
		}
		switch p.op {
		case opPing:
			c.write(appendControl(nil, opPong, p.payload, true), transport.DefaultWriteTimeout)
		case opClose:
			err := closeError(p.payload)
			if c.frames.message.continues {
				err = violation("a close frame within a message")
			}
			if f, ok := err.(*wswatch.CloseFrame); ok {
				c.WriteClose(f.Code, "")
			}
			return false, nil, err
		case opText, opBinary:
			if c.message.Write(p.payload); !p.final {
				continue
			}
			if !p.compressed {
				return p.op == opBinary, c.message.Bytes(), nil
			}
			err = inflate(&c.plain, c.message.Bytes(), c.history, c.request.Limit)
			if c.keepsHistory {
				c.history.add(c.plain.Bytes())
			}
			return p.op == opBinary, c.plain.Bytes(), err
		}
	}
}

// nextPart reads until a part is complete. The error is a violation, or the error of Receive.
func (c *clientConn) nextPart() (part, error) {
	for {
		for len(c.rest) > 0 {
			p, rest, err := c.frames.next(c.rest)
			if c.rest = rest; err != nil || p.op != 0 {
				return p, err
			}
		}
		n, err := c.body.Read(c.buffer)
		if n == 0 && err != nil {
			return part{}, wswatch.CutError(err, c.frames.isMessageUnfinished())
		}
		if c.request.Activity != nil {
			c.request.Activity()
		}
		c.rest = c.buffer[:n]
	}
}

// HasMessage reports whether a message in a single frame has arrived completely, so that Next does
// not wait for it. Our server sends each event in such a message.
func (c *clientConn) HasMessage() bool { return c.frames.isAtMessage() && beginsWithMessage(c.rest) }

// WriteClose implements [wswatch.Conn].
func (c *clientConn) WriteClose(code int, reason string) {
	c.write(appendClose(nil, code, reason, true), closeFrameTimeout)
}

// Cut implements [wswatch.Conn].
func (c *clientConn) Cut() {
	connio.Cut(c.conn)
	c.body.Close()
}

// write writes a frame, unless a write has failed or a close frame was written before. After a
// failed write, the next read fails too.
func (c *clientConn) write(frame []byte, timeout time.Duration) {
	select {
	case c.writing <- struct{}{}:
	case <-time.After(timeout):
		return
	}
	defer func() { <-c.writing }()
	if c.ended {
		return
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(timeout))
	_, err := c.body.Write(frame)
	c.ended = err != nil || frame[0]&bitsOpcode == opClose
}
