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

// past returns a version before newest of which the upstream still has the state, the older the better, and at least demand; zero: it has none.
func (u *upstream) past(ctx context.Context, newest, demand listwatch.Version) listwatch.Version {
	if newest <= max(demand, 1) {
		return 0
	}
	for back := min(listwatch.Version(u.lookback), newest-1); back > 0; back /= 2 {
		at := max(newest-back, demand)
		_, err := u.Source.List(ctx, listwatch.Query{Start: listwatch.At, Version: at, Match: listwatch.Exact, Limit: 1})
		if err == nil {
			return at
		}
		if listwatch.CodeOf(err) != listwatch.Expired {
			return 0
		}
	}
	return 0
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
