package loop

import (
	"os"
	"time"

	"golang.org/x/net/http2"
)

// SetReadDeadline is for http.ResponseController.
func (e *exchange) SetReadDeadline(at time.Time) error {
	e.st.c.mu.Lock()
	defer e.st.c.mu.Unlock()
	e.setReadDeadline(at)
	return nil
}

// SetWriteDeadline is for http.ResponseController. When the deadline passes, the stream is reset.
func (e *exchange) SetWriteDeadline(at time.Time) error {
	e.st.c.mu.Lock()
	defer e.st.c.mu.Unlock()
	e.setWriteDeadline(at)
	return nil
}

// setReadDeadline sets the time at which Read of the body fails. The zero time means never.
func (e *exchange) setReadDeadline(at time.Time) {
	e.setTimer(&e.readTimer, at, func() { e.body.fail(os.ErrDeadlineExceeded) })
}

// setWriteDeadline sets the time at which the stream is reset. The zero time means never.
func (e *exchange) setWriteDeadline(at time.Time) {
	e.setTimer(&e.writeTimer, at, func() { e.st.abort(http2.ErrCodeInternal, os.ErrDeadlineExceeded) })
}

func (e *exchange) setTimer(t **time.Timer, at time.Time, expire func()) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
	if at.IsZero() || e.finished {
		return
	}
	d := time.Until(at)
	if d <= 0 {
		expire()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		c := e.st.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if *t == timer && !e.finished { // otherwise the timer was replaced while it expired
			expire()
		}
	})
	*t = timer
}
