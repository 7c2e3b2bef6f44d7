package informer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A Lag is an upper bound on the lag of the local store.
type Lag struct {
	// Time is an upper bound: the local store has every write that was acknowledged longer than
	// Time ago. It is negative if it is not known.
	Time time.Duration
	// Versions is the number of versions between the local store and the newest version that the
	// Source has reported. Versions count the writes of the whole database, so this is not the
	// number of missing changes.
	Versions uint64
}

// defaultLagInterval is the interval of the checks if MaxLag is negative.
const defaultLagInterval = 10 * time.Second

// A lagMeter measures the lag. It is safe for concurrent use.
type lagMeter struct {
	mu sync.Mutex
	// Guarded by mu.

	// caughtUp is a time up to which the local store has every write, or zero if it is not known.
	caughtUp time.Time
	newest   listwatch.Version // the newest version that the Source has reported
	restarts uint32            // the number of times that the versions had started over before
	err      error             // of the last check
	known    chan struct{}     // closed when caughtUp is known for the first time
}

// checkLag checks the lag at each interval until ctx ends. Each check requests the newest version
// of the Source, and waits until the local store has reached it through an event or a probe.
func (i *Informer[T]) checkLag(ctx context.Context) {
	if i.MaxLag == 0 {
		return
	}
	interval := defaultLagInterval
	if i.MaxLag > 0 {
		interval = i.MaxLag / 4
	}
	for ctx.Err() == nil {
		at := time.Now()
		request, cancel := context.WithTimeout(ctx, max(interval, time.Second))
		v, err := i.newest(request)
		cancel()
		w := i.newWaiter(v)
		if i.state.lag.requested(w, err); err == nil {
			err = i.waitFor(ctx, "measure the lag", w)
		}
		if err == nil {
			i.state.lag.settle(w, at)
			if i.currentProgress().restarts != w.restarts {
				continue // the versions have started over, so the lag is unknown
			}
		}
		reflector.Sleep(ctx, interval-time.Since(at))
	}
}

// requested records the result of a request for the newest version. If err is nil, it is w.version.
func (l *lagMeter) requested(w *waiter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil && (w.restarts != l.restarts || w.version > l.newest) {
		l.newest = w.version
	}
}

// settle records that the local store has reached the version of w. at is the time at which that
// version was requested.
func (l *lagMeter) settle(w *waiter, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restarts = w.restarts
	if l.caughtUp = at; !isClosed(l.known) {
		close(l.known)
	}
}

// Lag returns the current lag. It is measured only if [Informer.MaxLag] is not zero.
func (i *Informer[T]) Lag() Lag {
	i.init()
	p := i.currentProgress()
	l := &i.state.lag
	l.mu.Lock()
	defer l.mu.Unlock()
	lag := Lag{Time: -1}
	if l.newest > p.version {
		lag.Versions = uint64(l.newest - p.version)
	}
	if !l.caughtUp.IsZero() && l.restarts == p.restarts {
		lag.Time = time.Since(l.caughtUp)
	}
	return lag
}

// CheckLag returns an error of code Unavailable if the local store may lack a write that was
// acknowledged longer than [Informer.MaxLag] ago. It returns nil if MaxLag is zero or negative.
func (i *Informer[T]) CheckLag() error {
	if i.MaxLag <= 0 {
		return nil
	}
	lag := i.Lag().Time
	if lag >= 0 && lag <= i.MaxLag {
		return nil
	}
	age := "its lag is not known"
	if lag >= 0 {
		age = fmt.Sprintf("it may lack the writes of the last %v", lag.Round(time.Millisecond))
	}
	i.state.lag.mu.Lock()
	defer i.state.lag.mu.Unlock()
	return &listwatch.Error{
		Code: listwatch.Unavailable, Op: "read from an informer", Err: i.state.lag.err,
		Message: fmt.Sprintf("the local store is too old: %s, and MaxLag is %v", age, i.MaxLag),
	}
}
