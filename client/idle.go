package client

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// An idleTimer calls a function when no reset has occurred for too long. It uses the
// monotonic clock and is safe for concurrent use.
type idleTimer struct {
	// Immutable after construction.
	timeout  time.Duration
	start    time.Time
	onExpiry func()
	timer    *time.Timer // nil if the timeout is disabled

	last    atomic.Int64 // the time of the last reset, in nanoseconds since start
	paused  atomic.Bool
	expired atomic.Bool
}

var errIdle = &listwatch.Error{
	Code: listwatch.Unavailable, Op: "receive",
	Message: "the server was silent for longer than the idle timeout", Err: context.DeadlineExceeded,
}

// newIdleTimer returns a timer that calls onExpiry when the timeout has passed without a reset. If
// the timeout is negative, it never calls onExpiry.
func newIdleTimer(timeout time.Duration, onExpiry func()) *idleTimer {
	t := &idleTimer{timeout: timeout, start: time.Now(), onExpiry: onExpiry}
	if timeout >= 0 {
		// check uses t.timer, so it must not run before t.timer is set.
		t.timer = time.AfterFunc(math.MaxInt64, t.check)
		t.timer.Reset(timeout)
	}
	return t
}

func (t *idleTimer) reset() { t.last.Store(int64(time.Since(t.start))) }

// pause keeps the timer from expiring until resume.
func (t *idleTimer) pause() { t.paused.Store(true) }

func (t *idleTimer) resume() {
	t.reset()
	t.paused.Store(false)
}

func (t *idleTimer) check() {
	left := t.timeout
	if !t.paused.Load() {
		left -= time.Since(t.start) - time.Duration(t.last.Load())
	}
	if left > 0 {
		t.timer.Reset(left)
		return
	}
	t.expired.Store(true)
	t.onExpiry()
}

func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
