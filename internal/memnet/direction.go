package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A direction is one direction of a connection: a bounded buffer with a reader and a
// writer. Both wait only on a condition variable, which testing/synctest treats as durably
// blocked.
type direction struct {
	max int // immutable; the size of the buffer

	mu      sync.Mutex
	changed sync.Cond // signalled when a field below changes; its lock is mu

	// Guarded by mu.
	buf          []byte // bytes written and not yet read
	taken        uint64 // the number of bytes read
	writerClosed error  // if not nil, writes return it, and reads return io.EOF once buf is empty
	readerClosed bool
	wasReset     bool // reads and writes return ECONNRESET, or net.ErrClosed after a close
	stalled      bool // the reader sees no bytes and no end
	readBy       deadline
	writeBy      deadline
}

// A deadline is pending while timer is set. It has passed when the timer has fired.
type deadline struct {
	timer  *time.Timer
	passed bool
}

func newDirection(max int) *direction {
	d := &direction{max: max}
	d.changed.L = &d.mu
	return d
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

func (d *direction) read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch {
		case d.readerClosed:
			return 0, net.ErrClosed
		case d.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case d.stalled:
		case d.wasReset:
			return 0, syscall.ECONNRESET
		case len(d.buf) > 0:
			n := copy(p, d.buf)
			d.buf = d.buf[n:]
			d.taken += uint64(n)
			d.changed.Broadcast()
			return n, nil
		case d.writerClosed != nil:
			return 0, io.EOF
		}
		d.changed.Wait()
	}
}

func (d *direction) write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for done := 0; ; {
		switch {
		case d.writerClosed != nil:
			return done, d.writerClosed
		case d.writeBy.passed:
			return done, os.ErrDeadlineExceeded
		case d.stalled:
		case d.wasReset || d.readerClosed:
			return done, syscall.ECONNRESET
		}
		if n := min(len(p)-done, d.max-len(d.buf)); n > 0 {
			d.buf = append(d.buf, p[done:done+n]...)
			done += n
			d.changed.Broadcast()
		}
		if done == len(p) {
			return done, nil
		}
		d.changed.Wait()
	}
}

// closeWriter closes the writing end. Later writes return err.
func (d *direction) closeWriter(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writerClosed = err
	d.writeBy.stop()
	d.changed.Broadcast()
}

// closeReader closes the reading end and reports whether unread bytes were left.
func (d *direction) closeReader() (unread bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readerClosed = true
	d.readBy.stop()
	d.changed.Broadcast()
	return len(d.buf) > 0
}

func (d *direction) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wasReset, d.buf = true, nil
	d.changed.Broadcast()
}

func (d *direction) stall(stalled bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stalled = stalled
	d.changed.Broadcast()
}

func (d *direction) setDeadline(of *deadline, t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of.stop()
	of.passed = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		of.passed = true
		d.changed.Broadcast()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		// If setDeadline replaced this timer while it fired, the new deadline has not
		// passed.
		if of.timer == timer {
			of.passed = true
			d.changed.Broadcast()
		}
	})
	of.timer = timer
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
