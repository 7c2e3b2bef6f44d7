package relay

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
)

// pageSize is how many objects are asked for at once.
const pageSize = 500

// looksBack reports whether the state is to be one of the past.
func (u *upstream) looksBack() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	deep := u.lookback > 0 && !u.shallow
	u.shallow = false
	return deep
}

// goShallow makes the next state be the newest: what came of one with a past can't be used, or not any more.
func (u *upstream) goShallow() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shallow = true
}

// watchPast makes t bring the state as it was some time ago, as initial events, and what followed, so that the relay has a history as
// soon as it has a state. Where the upstream can't do that it leaves t alone: then the relay has none, and that is no error.
//
// The rejected alternative is to begin with the newest state and to fetch the history when a client asks for it. It takes a second watch of
// the upstream, whose end nobody can tell but by a bookmark, and as many as there are clients from different versions.
func (u *upstream) watchPast(ctx context.Context, t *tap, q listwatch.Query) goal {
	asked := time.Now()
	newest, err := u.Source.List(ctx, listwatch.Query{Limit: 1})
	if err != nil {
		return goal{}
	}
	s := &search{source: u.Source, newest: newest.Version, within: min(max(4*time.Since(asked), leastAnswer), mostAnswer)}
	floor := max(q.Version, 1)
	if s.newest <= floor {
		return goal{}
	}
	at, w, first := s.oldest(ctx, min(listwatch.Version(u.lookback), s.newest-floor))
	if w == nil {
		return goal{}
	}
	state, err := u.stateAt(ctx, at)
	if err != nil {
		_ = w.Close() // it is not needed any more
		return goal{}
	}
	t.pending, t.Watcher, t.past = append(state, first...), w, newest.Version
	return goal{asked, newest.Version}
}

// A goal is where the state that is on its way leads to.
type goal struct {
	asked   time.Time         // what was acknowledged by then is there once the goal is reached; zero: nobody knows
	version listwatch.Version // that of the past's end; zero: the state is none of the past
}

const (
	// leastAnswer and mostAnswer bound how long a watch is given to say that its version expired: it does so at once or never.
	leastAnswer = 50 * time.Millisecond
	mostAnswer  = time.Second
)

// A search looks for the oldest version that the upstream can still be followed from. Each question is for a page of one object, or a watch
// that is closed again: two for each bit of lookback at most, and mostly one in all.
type search struct {
	source listwatch.Source
	newest listwatch.Version
	within time.Duration // how long a watch may take to be refused
}

// oldest returns a version that is at most back before the newest, and a watch from there with the first events that it has brought; nil: there
// is no such version.
func (s *search) oldest(ctx context.Context, back listwatch.Version) (listwatch.Version, listwatch.Watcher, []listwatch.Event) {
	back = s.deepest(back, func(back listwatch.Version) bool { return s.lists(ctx, s.newest-back) })
	if back == 0 {
		return 0, nil, nil
	}
	w, first := s.watch(ctx, s.newest-back)
	if w != nil {
		return s.newest - back, w, first
	}
	// Some servers list what they can't be watched from: in Kubernetes lists come from etcd, watches from a cache that is younger.
	at := s.newest
	s.deepest(back-1, func(back listwatch.Version) bool {
		next, events := s.watch(ctx, s.newest-back)
		if next == nil {
			return false
		}
		if w != nil {
			_ = w.Close() // the older one is better
		}
		at, w, first = s.newest-back, next, events
		return true
	})
	return at, w, first
}

// deepest returns the greatest number up to most for which there is ok, where that holds for all below it; zero: for none.
func (s *search) deepest(most listwatch.Version, ok func(listwatch.Version) bool) listwatch.Version {
	lo, hi := listwatch.Version(0), most+1
	for try := most; lo+1 < hi; try = lo + (hi-lo)/2 {
		if ok(try) {
			lo = try
		} else {
			hi = try
		}
	}
	return lo
}

// lists reports whether there is a state at a version.
func (s *search) lists(ctx context.Context, at listwatch.Version) bool {
	_, err := s.source.List(ctx, listwatch.Query{Start: listwatch.At, Version: at, Match: listwatch.Exact, Limit: 1})
	return err == nil
}

// watch returns a watch from a version, and what it brings first; nil: it is refused.
func (s *search) watch(ctx context.Context, at listwatch.Version) (listwatch.Watcher, []listwatch.Event) {
	w, err := s.source.Watch(ctx, listwatch.Query{Start: listwatch.At, Version: at, InitialEvents: listwatch.No, Bookmarks: true})
	if err != nil {
		return nil, nil
	}
	events := make([]listwatch.Event, pageSize)
	n := 0
	if p, ok := w.(listwatch.Poller); ok {
		n, err = p.Poll(events)
	} else {
		ctx, cancel := context.WithTimeout(ctx, s.within)
		n, err = w.Next(ctx, events)
		if ctx.Err() != nil {
			err = nil
		}
		cancel()
	}
	if err != nil {
		_ = w.Close() // it has failed
		return nil, nil
	}
	return w, events[:n]
}

// stateAt returns the state at version at as the initial events of a watch, with their end.
func (u *upstream) stateAt(ctx context.Context, at listwatch.Version) ([]listwatch.Event, error) {
	q := listwatch.Query{Start: listwatch.At, Version: at, Match: listwatch.Exact, Limit: pageSize}
	var events []listwatch.Event
	for {
		page, err := u.Source.List(ctx, q)
		if err != nil {
			return nil, err
		}
		if page.Version != at {
			return nil, corrupt("a list at version " + at.String() + " is of version " + page.Version.String())
		}
		for _, o := range page.Items {
			events = append(events, listwatch.Event{Type: listwatch.Added, Initial: true, Object: o, Version: o.Version})
		}
		if page.Continue == "" {
			return append(events, listwatch.NewBookmark(listwatch.Describe(u.Source), at, true)), nil
		}
		q = listwatch.Query{Limit: pageSize, Continue: page.Continue}
	}
}
