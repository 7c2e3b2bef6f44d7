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
	stopped atomic.Bool
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

func (i *idleTimer) reset() { i.last.Store(int64(time.Since(i.start))) }

// pause keeps the timer from expiring until resume.
func (i *idleTimer) pause() { i.paused.Store(true) }

func (i *idleTimer) resume() {
	i.reset()
	i.paused.Store(false)
}

func (i *idleTimer) check() {
	left := i.timeout
	if !i.paused.Load() {
		left -= time.Since(i.start) - time.Duration(i.last.Load())
	}
	if left > 0 {
		i.timer.Reset(left)
	}
	if i.stopped.Load() { // read after Reset, so that either this or stop stops the timer
		i.timer.Stop()
		return
	}
	if left > 0 {
		return
	}
	i.expired.Store(true)
	i.onExpiry()
}

func (i *idleTimer) stop() {
	i.stopped.Store(true)
	if i.timer != nil {
		i.timer.Stop()
	}
}
