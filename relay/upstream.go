package relay

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// An upstream is what a relay follows, as its follower sees it: with a past from the start, with bookmarks wherever the watcher knows how
// far it is, and with an end where its epoch is another one.
type upstream struct {
	listwatch.Source
	lookback int

	mu sync.Mutex
	// Guarded by mu.
	tap     *tap   // the watch that is open; nil: none
	began   string // the epoch of the state that the relay has; empty: not known
	goal    goal   // where the state that is on its way leads to
	shallow bool   // the next state is to be the newest: one with a past has just failed
}

func newUpstream(s listwatch.Source, lookback int) *upstream {
	return &upstream{Source: s, lookback: max(lookback, 0)}
}

// Watch implements [listwatch.Source] for the follower: it has one watch at a time.
func (u *upstream) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	initial := q.SendsInitialEvents()
	if !initial {
		if err := u.checkEpoch(); err != nil {
			return nil, err
		}
	}
	t := &tap{upstream: u, initial: initial, signal: make(chan struct{}, 1)}
	var to goal
	if initial && u.looksBack() {
		to = u.watchPast(ctx, t, q)
	}
	if t.Watcher == nil {
		if q.Start == listwatch.Newest {
			to.asked = time.Now()
		}
		var err error
		if t.Watcher, err = u.Source.Watch(ctx, q); err != nil {
			return nil, err
		}
	}
	t.poller, _ = t.Watcher.(listwatch.Poller)
	t.raise = t.nudge
	u.opened(t, to)
	return t, nil
}

func (u *upstream) opened(t *tap, to goal) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tap, t.following, u.goal = t, !t.initial, to
}

// closed reports what became of t, which was open.
func (u *upstream) closed(t *tap) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tap == t {
		u.tap, u.goal = nil, goal{}
	}
}

// isOpen reports whether there is a watch.
func (u *upstream) isOpen() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tap != nil
}

// takeGoal returns where the state that has come leads to. One that was listed leads nowhere.
func (u *upstream) takeGoal() goal {
	u.mu.Lock()
	defer u.mu.Unlock()
	to := u.goal
	u.goal = goal{}
	return to
}

// begun takes down which epoch the state is of, which has come.
func (u *upstream) begun(epoch string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.began = epoch
	if u.tap != nil {
		u.tap.following = true
	}
}

// checkEpoch returns an error where the source is known to be of another epoch than the state: to go on from a version of the one in the
// other would mix two histories. The watch that may be open ends with that error.
func (u *upstream) checkEpoch() error {
	is := listwatch.Describe(u.Source).Epoch
	u.mu.Lock()
	was, open := u.began, u.tap
	if open != nil && !open.following {
		open = nil // it brings a state, which may be of the new one
	}
	u.mu.Unlock()
	if was == "" || is == "" || was == is {
		return nil
	}
	err := anotherEpoch(was, is)
	if open != nil {
		open.fail(err)
	}
	return err
}

// nudge makes the watch that is open look how far it has come.
func (u *upstream) nudge() {
	u.mu.Lock()
	open := u.tap
	u.mu.Unlock()
	if open != nil {
		open.nudge()
	}
}

// A tap is a watch of the upstream, which the relay can end with an error of its own.
type tap struct {
	// Immutable once it is open.
	listwatch.Watcher
	upstream *upstream
	poller   listwatch.Poller // Watcher, if it is one; nil: it is not
	initial  bool             // it began with the state
	signal   chan struct{}    // one place; filled when poller is to be looked at
	raise    func()

	following bool // its state has come; guarded by upstream.mu

	// Owned by the reader.
	past     listwatch.Version // where the state was when it began, and it has not come to yet; zero: there is none
	pending  []listwatch.Event // before those of Watcher
	position listwatch.Version // of the newest bookmark that was made here

	mu    sync.Mutex
	cause error // guarded by mu; what the relay ended it with
}

// Next implements [listwatch.Watcher].
func (t *tap) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if len(t.pending) > 0 {
		n := copy(dst, t.pending)
		if t.pending = t.pending[n:]; len(t.pending) == 0 {
			t.pending = nil
		}
		t.arrive(dst[:n])
		return n, nil
	}
	next := t.Watcher.Next
	if t.poller != nil {
		next = t.poll
	}
	n, err := next(ctx, dst)
	t.arrive(dst[:n])
	if err == nil {
		return n, nil
	}
	if cause := t.failure(); cause != nil {
		return n, cause
	}
	switch listwatch.CodeOf(err) {
	case listwatch.Expired, listwatch.Corrupt, listwatch.Unsupported:
		if t.past != 0 {
			t.upstream.goShallow() // it would lead to the same place again
		}
	}
	return n, err
}

// arrive notes where the past has led to its end.
func (t *tap) arrive(events []listwatch.Event) {
	if n := len(events); n > 0 && !events[n-1].Initial && events[n-1].Version >= t.past {
		t.past = 0
	}
}

// poll is Next of a Poller, which knows how far it is though nothing has come: then it makes a bookmark.
func (t *tap) poll(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if n, err := t.poller.Poll(dst); n > 0 || err != nil {
			return n, err
		}
		if at := t.poller.Position(); at > t.position {
			t.position = at
			dst[0] = listwatch.NewBookmark(listwatch.Describe(t.upstream.Source), at, false)
			return 1, nil
		}
		t.poller.Wake(t.raise)
		select {
		case <-t.signal:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (t *tap) nudge() {
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

// fail ends t with err.
func (t *tap) fail(err error) {
	t.mu.Lock()
	if t.cause == nil {
		t.cause = err
	}
	t.mu.Unlock()
	_ = t.Watcher.Close() // it never fails in a way that mattered here
	t.nudge()
}

func (t *tap) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Close implements [listwatch.Watcher].
func (t *tap) Close() error {
	t.upstream.closed(t)
	return t.Watcher.Close()
}
