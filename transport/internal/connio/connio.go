// Package connio contains code that several transports use to write to a connection: a lock
// with a timeout, a write deadline that is moved rarely, batched writes, and socket
// options.
package connio

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A Lock is a mutex that is held during I/O. Unlike a sync.Mutex it supports a timeout, and
// testing/synctest treats a goroutine that waits for it as durably blocked. The zero value is
// unlocked.
type Lock struct {
	mu sync.Mutex
	// Guarded by mu.
	held    bool
	waiting []chan struct{} // each is closed when its waiter holds the lock
}

// Lock waits for the lock and takes it.
func (l *Lock) Lock() {
	if turn := l.request(); turn != nil {
		<-turn
	}
}

// IsHeld reports whether the lock is held.
func (l *Lock) IsHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// request takes the lock if it is free. Otherwise it returns the channel to wait for.
func (l *Lock) request() (turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		l.held = true
		return nil
	}
	turn = make(chan struct{})
	l.waiting = append(l.waiting, turn)
	return turn
}

// LockWithin takes the lock and returns true. It returns false if the lock is not free within
// timeout. A negative timeout means no limit.
func (l *Lock) LockWithin(timeout time.Duration) bool {
	turn := l.request()
	if turn == nil {
		return true
	}
	var late <-chan time.Time
	if timeout >= 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-turn:
		return true
	case <-late:
		return !l.giveUp(turn)
	}
}

// giveUp stops waiting for the channel turn. It returns false if this channel was closed before. In
// that case the caller holds the lock.
func (l *Lock) giveUp(turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, turn)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// Unlock releases the lock.
func (l *Lock) Unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.held, l.waiting = false, nil
		return
	}
	close(l.waiting[0])
	l.waiting = l.waiting[1:]
}

// A Reader reads from a connection. It may have a buffer.
type Reader interface {
	io.Reader
	// Buffered returns the number of bytes that can be read without reading the connection.
	Buffered() int
}

// ErrSenderClosed is the error that Send returns after Close.
var ErrSenderClosed error = &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Message: "the stream is closed", Err: net.ErrClosed}

// SendError returns the error for a Send whose write failed with err.
func SendError(err error) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Err: err}
}

// MaxWrite is the maximum number of bytes of one write.
const MaxWrite = 64 << 10

var batches = sync.Pool{New: func() any { return new([MaxWrite]byte) }}

// WriteBatched passes the frames in order to the function write, in pieces of at most
// [MaxWrite] bytes. It copies small frames into one buffer. A single frame is not copied.
// write must not keep its argument. WriteBatched stops at the first error.
func WriteBatched(frames [][]byte, write func(p []byte) error) error {
	if len(frames) == 1 {
		return writePieces(frames[0], write)
	}
	batch := batches.Get().(*[MaxWrite]byte)
	defer batches.Put(batch)
	n := 0
	for _, f := range frames {
		if len(f) > MaxWrite-n && n > 0 {
			if err := write(batch[:n]); err != nil {
				return err
			}
			n = 0
		}
		if len(f) > MaxWrite {
			if err := writePieces(f, write); err != nil {
				return err
			}
			continue
		}
		n += copy(batch[n:], f)
	}
	if n == 0 {
		return nil
	}
	return write(batch[:n])
}

// writePieces writes p in pieces that a slow peer can accept within the write timeout.
func writePieces(p []byte, write func(p []byte) error) error {
	for len(p) > 0 {
		n := min(len(p), MaxWrite)
		if err := write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// ReleaseBuffer frees the buffer of r, the reader of the hijacked connection conn, which net/http
// would keep until the handler returns. r must not be used afterwards. A conn that is neither TCP
// nor TLS may read through r, which then keeps its buffer.
func ReleaseBuffer(conn net.Conn, r *bufio.Reader) {
	_, isTLS := conn.(*tls.Conn)
	if _, isTCP := TCP(conn); isTCP || isTLS {
		*r = *bufio.NewReaderSize(nil, 0)
	}
}
