package client

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// A watchdog gives up what has been silent for too long. It measures with the monotonic clock. Safe for concurrent use.
type watchdog struct {
	// Immutable after construction.
	limit  time.Duration
	start  time.Time
	giveUp func()
	timer  *time.Timer // nil: never

	last  atomic.Int64 // when something came last, since start
	held  atomic.Bool  // nobody listens, so silence means nothing
	fired atomic.Bool
}

var errIdle = &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "nothing has come from the server for too long", Err: context.DeadlineExceeded}

// newWatchdog returns one that calls giveUp after limit without a touch; negative: never.
func newWatchdog(limit time.Duration, giveUp func()) *watchdog {
	d := &watchdog{limit: limit, start: time.Now(), giveUp: giveUp}
	if limit >= 0 {
		// check uses timer, so it must not run before that is set.
		d.timer = time.AfterFunc(math.MaxInt64, d.check)
		d.timer.Reset(limit)
	}
	return d
}

func (d *watchdog) touch() { d.last.Store(int64(time.Since(d.start))) }

// hold makes silence count for nothing until it is let go.
func (d *watchdog) hold() { d.held.Store(true) }

func (d *watchdog) letGo() {
	d.touch()
	d.held.Store(false)
}

func (d *watchdog) check() {
	left := d.limit
	if !d.held.Load() {
		left -= time.Since(d.start) - time.Duration(d.last.Load())
	}
	if left > 0 {
		d.timer.Reset(left)
		return
	}
	d.fired.Store(true)
	d.giveUp()
}

func (d *watchdog) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
