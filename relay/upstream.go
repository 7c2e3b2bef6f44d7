package relay

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// An upstream is the Source that the relay's Reflector follows. It wraps the given Source
// and adds a backfill of the history, a bookmark whenever a Poller advances without an
// event, and an error when the epoch changes.
type upstream struct {
	// Immutable after construction.

	// Source is the Source that the Reflector follows. Other goroutines must not list or watch
	// it, because a client's connections remember the epoch of their last list.
	listwatch.Source
	origin           listwatch.Source // the given Source, for consistent reads
	tasks            *tasks
	backfillVersions int

	// progress is the progress of the last backfill. Owned by the Reflector.
	progress backfillProgress

	mu sync.Mutex
	// Guarded by mu.
	open  *upstreamWatcher // nil if no watch is open
	epoch string           // the epoch of the relay's state; empty if not known
	// unverified is true if epoch comes from a copy, and the Source has not confirmed it yet.
	unverified bool
	// target is the version that the open watch must reach before the relay serves the watch's
	// state. It is zero when the state is complete.
	target target
	// noBackfill is set by skipBackfill. If true, the next watch begins with the newest state.
	noBackfill bool
	// refused is the version of a backfill that has expired. If not zero, the next watch begins
	// with a backfill from a later version.
	refused listwatch.Version
}

// Watch implements [listwatch.Source]. Only one watch may be open at a time.
func (u *upstream) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w := &upstreamWatcher{upstream: u, signal: make(chan struct{}, 1)}
	w.onWake = w.wake
	if !q.SendsInitialEvents() {
		if err := u.checkEpoch(); err != nil {
			return nil, err
		}
		w.synced = true
		if err := u.watch(ctx, w, q, target{}); err != nil {
			u.failed(err)
			return nil, err
		}
		if err := u.verifyEpoch(); err != nil {
			_ = w.Close() // it may belong to another history
			return nil, err
		}
		return w, nil
	}
	var to target
	u.progress = backfillProgress{}
	// A difference keeps the departures of the log, which are worth more than a longer history. But
	// after a backfill has expired, the log may be far behind, so another one takes precedence.
	if refused, ok := u.nextBackfill(); ok && (q.Since.Version == 0 || refused != 0) {
		to = u.backfill(ctx, w, q, refused)
	}
	if q.Start == listwatch.StartNewest && w.Watcher == nil {
		to.asked = time.Now()
	}
	if err := u.watch(ctx, w, q, to); err != nil {
		return nil, err
	}
	return w, nil
}

// watch opens the Watcher of w, unless a backfill has opened it.
func (u *upstream) watch(ctx context.Context, w *upstreamWatcher, q listwatch.Query, to target) (err error) {
	if w.Watcher == nil {
		if w.Watcher, err = u.Source.Watch(ctx, q); err != nil {
			return err
		}
	}
	w.poller, _ = w.Watcher.(listwatch.Poller)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open, u.target = w, to
	return nil
}

// failed decides how the next watch begins if a watch has failed before the backfill is complete.
func (u *upstream) failed(err error) {
	if u.progress.end == 0 {
		return
	}
	switch code := listwatch.CodeOf(err); {
	case code == listwatch.Expired && !u.progress.isSecond:
		u.mu.Lock()
		defer u.mu.Unlock()
		u.refused = u.progress.start
	case code == listwatch.Expired || code == listwatch.Corrupt || code == listwatch.Unsupported:
		u.skipBackfill() // another backfill would fail for the same reason
	}
}

// closed records that w is closed.
func (u *upstream) closed(w *upstreamWatcher) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open == w {
		u.open, u.target = nil, target{}
	}
}

// current returns the open watch, or nil if there is none.
func (u *upstream) current() *upstreamWatcher {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}

// nextBackfill reports whether the next watch may begin with a backfill. The backfill must start
// after version refused, which is zero if the previous backfill did not expire.
func (u *upstream) nextBackfill() (refused listwatch.Version, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	refused, ok = u.refused, u.backfillVersions > 0 && !u.noBackfill
	u.refused, u.noBackfill = 0, false
	return refused, ok
}

// skipBackfill makes the next watch begin with the newest state.
func (u *upstream) skipBackfill() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.noBackfill = true
}

// takeTarget returns the target of the state that is now complete, and clears it. A state that was
// listed, not watched, has no target.
func (u *upstream) takeTarget() target {
	u.mu.Lock()
	defer u.mu.Unlock()
	to := u.target
	u.target = target{}
	return to
}

// synced records the epoch of the state that is now complete.
func (u *upstream) synced(epoch string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.epoch, u.unverified = epoch, false
	if u.open != nil {
		u.open.synced = true
	}
}

// loaded records the epoch of a copy.
func (u *upstream) loaded(epoch string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.epoch, u.unverified = epoch, true
}

// verifyEpoch is called when the Source has opened a watch. It returns an error if the epoch comes
// from a copy, and the Source does not confirm it.
func (u *upstream) verifyEpoch() error {
	is := listwatch.Describe(u.Source).Epoch
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.unverified && u.epoch != is {
		return epochChanged(u.epoch, is)
	}
	u.unverified = false
	return nil
}

// checkEpoch returns an error if the epoch of the Source differs from the epoch of the relay's
// state, because resuming would mix two histories. It also ends the open watch with this error,
// unless the watch is within its initial events, which may belong to the new epoch.
func (u *upstream) checkEpoch() error {
	is := listwatch.Describe(u.Source).Epoch
	u.mu.Lock()
	was, open := u.epoch, u.open
	if open != nil && !open.synced {
		open = nil
	}
	u.mu.Unlock()
	if was == "" || is == "" || was == is {
		return nil
	}
	err := epochChanged(was, is)
	if open != nil {
		open.fail(err)
	}
	return err
}

// joinsEvents reports whether the open watch returns all events of one arrival in one batch.
func (u *upstream) joinsEvents() bool {
	open := u.current()
	if open == nil {
		return false
	}
	w, ok := open.Watcher.(interface{ JoinsEvents() bool })
	return ok && w.JoinsEvents()
}

// fail ends the open watch with err.
func (u *upstream) fail(err error) {
	if open := u.current(); open != nil {
		open.fail(err)
	}
}

// wake makes the open watch check its position.
func (u *upstream) wake() {
	if open := u.current(); open != nil {
		open.wake()
	}
}

// A target is the version that a backfill must reach before the relay serves the state.
type target struct {
	asked   time.Time         // when the newest state was requested; zero if it was not requested
	version listwatch.Version // the newest version at that time; zero if there is no backfill
}

// backfillProgress is the progress of the relay's own watch through the history of a backfill. It
// remains when a client reconnects.
type backfillProgress struct {
	start    listwatch.Version // the version at which the backfill started
	end      listwatch.Version // the version of its target; zero if it is reached or there is none
	isSecond bool              // the previous backfill expired
}
