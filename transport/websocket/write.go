package websocket

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

const (
	// minVector is the mean size of frames above which writing a vector is cheaper than copying
	// the frames into one buffer.
	minVector = 4 << 10
	// maxVector is the maximum number of frames in one writev. The runtime keeps the vector for
	// the life of the connection.
	maxVector = 32
	// maxBuffer is the maximum number of bytes buffered between startBuffering and flushBuffer.
	maxBuffer = 64 << 10
)

// writeFrames writes whole frames. Large frames are written as a vector if the connection
// supports it; other frames are copied into one buffer. With TLS no vector is used, because
// each of its elements would become a record and a system call.
func (c *conn) writeFrames(frames [][]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return errClosed
	}
	total := 0
	for _, f := range frames {
		total += len(f)
	}
	if c.tcp != nil && total >= minVector*len(frames) {
		return c.recordError(c.writeVector(frames))
	}
	return c.recordError(connio.WriteBatched(frames, c.write))
}

// buffers holds the buffers of conns, which share them because few conns use one at the same
// time.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// startBuffering delays the writes of the library until flushBuffer, so that many messages are
// sent in one write. The library must write whole frames in between.
func (c *conn) startBuffering() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.buffer = buffers.Get().(*bytes.Buffer)
}

// flushBuffer writes the buffered bytes and ends the buffering.
func (c *conn) flushBuffer() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	buffer := c.buffer
	c.buffer = nil
	defer buffers.Put(buffer)
	defer buffer.Reset()
	if c.ended || buffer.Len() == 0 {
		return c.writeErr
	}
	return c.recordError(c.write(buffer.Bytes()))
}

// writeAfterBuffer writes the buffered bytes and then p.
func (c *conn) writeAfterBuffer(p []byte) error {
	if c.buffer != nil && c.buffer.Len() > 0 {
		defer c.buffer.Reset()
		if err := c.write(c.buffer.Bytes()); err != nil {
			return err
		}
	}
	return c.write(p)
}

func (c *conn) write(p []byte) error {
	return c.writeWhileProgress(func() (int64, error) {
		n, err := c.Conn.Write(p)
		p = p[n:]
		return int64(n), err
	})
}

func (c *conn) writeVector(frames [][]byte) error {
	for len(frames) > 0 {
		n := min(len(frames), maxVector)
		vector := net.Buffers(frames[:n])
		if err := c.writeWhileProgress(func() (int64, error) { return vector.WriteTo(c.tcp) }); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

// writeWhileProgress calls write, which continues where it stopped, until everything is written
// or the peer accepts no bytes for the write timeout. The timeout of c.deadline is half of the
// write timeout, and a write fails when the deadline expires twice in a row without progress.
// So it fails between one and two write timeouts after the last byte.
func (c *conn) writeWhileProgress(write func() (int64, error)) error {
	c.deadline.arm()
	for expired := 0; ; {
		n, err := write()
		c.sent.Add(n)
		if err == nil {
			return nil
		}
		expired++
		if n > 0 {
			expired = 0
		}
		if expired == 2 || c.isTLS() || !errors.Is(err, os.ErrDeadlineExceeded) || !c.deadline.extend() {
			return err
		}
	}
}

// isTLS reports whether the connection uses TLS. A write to a TLS connection cannot continue
// after its deadline has expired, so with TLS the deadline is the whole write timeout.
func (c *conn) isTLS() bool {
	_, ok := c.Conn.(*tls.Conn)
	return ok
}

// A writeDeadline moves the write deadline of a connection until setFinal is called.
type writeDeadline struct {
	mu sync.Mutex
	// Guarded by mu.
	moving  connio.WriteDeadline
	isFinal bool
}

// arm must be called before a write.
func (d *writeDeadline) arm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isFinal {
		d.moving.Arm()
	}
}

// extend gives more time to a write whose deadline has expired. It returns false if the
// deadline is final.
func (d *writeDeadline) extend() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isFinal {
		d.moving.Extend()
	}
	return !d.isFinal
}

// setFinal makes all writes, including one in progress, fail when wait has passed. Only the
// first call has an effect.
func (d *writeDeadline) setFinal(wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isFinal {
		d.isFinal = true
		_ = d.moving.SetFunc(time.Now().Add(wait)) // fails only on a closed connection
	}
}
