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

// A half is one direction of a connection: a bounded buffer with a reader and a writer. It waits on a condition variable alone,
// which is what a synctest bubble takes for blocked.
type half struct {
	max int // immutable

	mu      sync.Mutex
	changed sync.Cond // signalled on every change of what follows; its lock is mu

	// Guarded by mu.
	buf          []byte // written and not read
	writerClosed error  // not nil: what later writes get; the reader gets the buffer and then EOF
	readerClosed bool
	wasReset     bool // both ends get ECONNRESET, but an end that closed it gets ErrClosed
	stalled      bool // the reader sees nothing
	readBy       deadline
	writeBy      deadline
}

// A deadline has passed or not; timer is what makes it pass.
type deadline struct {
	timer  *time.Timer
	passed bool
}

func newHalf(max int) *half {
	h := &half{max: max}
	h.changed.L = &h.mu
	return h
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readerClosed:
			return 0, net.ErrClosed
		case h.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case h.stalled:
		case h.wasReset:
			return 0, syscall.ECONNRESET
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			h.changed.Broadcast()
			return n, nil
		case h.writerClosed != nil:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for done := 0; ; {
		switch {
		case h.writerClosed != nil:
			return done, h.writerClosed
		case h.writeBy.passed:
			return done, os.ErrDeadlineExceeded
		case h.stalled:
		case h.wasReset || h.readerClosed:
			return done, syscall.ECONNRESET
		}
		if n := min(len(p)-done, h.max-len(h.buf)); n > 0 {
			h.buf = append(h.buf, p[done:done+n]...)
			done += n
			h.changed.Broadcast()
		}
		if done == len(p) {
			return done, nil
		}
		h.changed.Wait()
	}
}

// closeWriter ends the direction from its writing end, whose later writes fail with err.
func (h *half) closeWriter(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writerClosed = err
	h.writeBy.stop()
	h.changed.Broadcast()
}

// closeReader ends the direction from its reading end and reports whether bytes were left in it.
func (h *half) closeReader() (unread bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readerClosed = true
	h.readBy.stop()
	h.changed.Broadcast()
	return len(h.buf) > 0
}

func (h *half) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wasReset, h.buf = true, nil
	h.changed.Broadcast()
}

func (h *half) stall(stalled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stalled = stalled
	h.changed.Broadcast()
}

func (h *half) setDeadline(d *deadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.stop()
	d.passed = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		h.changed.Broadcast()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		// A timer that fired while it was being replaced must not make the new deadline pass.
		if d.timer == timer {
			d.passed = true
			h.changed.Broadcast()
		}
	})
	d.timer = timer
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
