//go:build unix

package connio

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// NewReader returns a Reader of conn. A Reader of a TCP connection has a buffer from a pool, but
// only while there is something to read, so that a Reader that waits holds no memory. Other
// connections are read without a buffer, because a TLS connection has its own.
func NewReader(conn net.Conn) Reader {
	tcp, ok := TCP(conn)
	if !ok {
		return unbuffered{conn}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return unbuffered{conn}
	}
	return &pooledReader{raw: raw}
}

type unbuffered struct{ net.Conn }

func (unbuffered) Buffered() int { return 0 }

const readSize = 4 << 10

var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// A pooledReader is owned by the goroutine that reads.
type pooledReader struct {
	raw    syscall.RawConn
	buffer *[readSize]byte // nil if nothing is unread
	unread []byte          // the part of buffer that was not read
}

func (r *pooledReader) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.unread)
	if r.unread = r.unread[n:]; len(r.unread) == 0 {
		readBuffers.Put(r.buffer)
		r.buffer, r.unread = nil, nil
	}
	return n, nil
}

func (r *pooledReader) Buffered() int { return len(r.unread) }

// fill waits until there is something to read, and reads it.
func (r *pooledReader) fill() error {
	var fault error
	err := r.raw.Read(func(fd uintptr) bool {
		buffer := readBuffers.Get().(*[readSize]byte)
		for {
			n, err := syscall.Read(int(fd), buffer[:])
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				readBuffers.Put(buffer)
				return false
			case err == nil && n == 0:
				err = io.EOF
			}
			if fault = err; err != nil {
				readBuffers.Put(buffer)
				return true
			}
			r.buffer, r.unread = buffer, buffer[:n]
			return true
		}
	})
	if err != nil {
		return err
	}
	return fault
}
