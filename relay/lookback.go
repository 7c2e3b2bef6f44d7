package relay

import (
	"context"

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

// watchPast returns the state as it was some time ago, as initial events, and a watch of what followed, so that the relay has a history as
// soon as it has a state. Where the upstream can't do that it returns nil: then the relay has none, and that is no error.
//
// The rejected alternative is to begin with the newest state and to fetch the history when a client asks for it. It takes a second watch of
// the upstream, whose end nobody can tell but by a bookmark, and as many as there are clients from different versions.
func (u *upstream) watchPast(ctx context.Context, q listwatch.Query) ([]listwatch.Event, listwatch.Watcher) {
	newest, err := u.Source.List(ctx, listwatch.Query{Limit: 1})
	if err != nil {
		return nil, nil
	}
	at := u.past(ctx, newest.Version, q.Version)
	if at == 0 {
		return nil, nil
	}
	state, err := u.stateAt(ctx, at)
	if err != nil {
		return nil, nil
	}
	w, err := u.Source.Watch(ctx, listwatch.Query{Start: listwatch.At, Version: at, InitialEvents: listwatch.No, Bookmarks: true})
	if err != nil {
		return nil, nil
	}
	u.mu.Lock()
	u.newest = newest.Version
	u.mu.Unlock()
	return state, w
}

// past returns the oldest version of which the upstream still has the state, as far as lookback and demand let it; zero: there is none before
// newest. Each question is for a page of one object, of which there are two for each bit of lookback at most, and mostly one in all.
func (u *upstream) past(ctx context.Context, newest, demand listwatch.Version) listwatch.Version {
	if newest <= max(demand, 1) {
		return 0
	}
	// The state lo versions back is there, the one hi versions back is not.
	lo, hi := listwatch.Version(0), min(listwatch.Version(u.lookback), newest-max(demand, 1))+1
	for step := hi - 1; lo+1 < hi; step = (lo + hi) / 2 {
		_, err := u.Source.List(ctx, listwatch.Query{Start: listwatch.At, Version: newest - step, Match: listwatch.Exact, Limit: 1})
		switch {
		case err == nil:
			lo = step
		case listwatch.CodeOf(err) == listwatch.Expired:
			hi = step
		default:
			return 0
		}
	}
	if lo == 0 {
		return 0
	}
	return newest - lo
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
