package reflector

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/listwatch/listwatch"
)

const (
	// plainFor is how long a source that doesn't stream its state is not asked to.
	plainFor = time.Hour
	// mostBroken is after how many states without an end a source is taken not to stream it: it may not know how to say the end.
	mostBroken = 3
	// patience is how long a source may be behind a version that it was at before: it may be another replica.
	patience = time.Minute
)

// open returns a watch that goes on where the sink is, or begins with the state.
func (r *run) open(ctx context.Context) (listwatch.Watcher, error) {
	q := r.selection()
	q.Bookmarks = true
	if r.following {
		q.Start, q.Version, q.InitialEvents = listwatch.At, r.progress.Version, listwatch.No
		return r.Source.Watch(ctx, q)
	}
	if time.Now().Before(r.plain) {
		return r.list(ctx)
	}
	q = r.from(q)
	q.InitialEvents = listwatch.Yes
	w, err := r.Source.Watch(ctx, q)
	if cantStream(err) {
		// If it is something else that the source doesn't like, the list will tell.
		w, err := r.list(ctx)
		if err == nil {
			r.plain = time.Now().Add(plainFor)
		}
		return w, err
	}
	if err == nil {
		r.progress = Progress{Initial: true}
		r.Sink.Begin()
	}
	return w, err
}

// cantStream reports whether err may mean that the source doesn't know initial events.
func cantStream(err error) bool {
	code := listwatch.CodeOf(err)
	return code == listwatch.Unsupported || code == listwatch.Invalid
}

// selection is what of Query counts.
func (r *run) selection() listwatch.Query {
	q := r.Query
	return listwatch.Query{Namespace: q.Namespace, Name: q.Name, Labels: q.Labels, Fields: q.Fields}
}

// from adds to q that the state must not be older than what the sink has seen.
func (r *run) from(q listwatch.Query) listwatch.Query {
	if r.demand != 0 {
		q.Start, q.Version, q.Match = listwatch.At, r.demand, listwatch.NotOlderThan
	}
	return q
}

// list gives the sink the state page by page, and opens a watch of what follows.
func (r *run) list(ctx context.Context) (listwatch.Watcher, error) {
	r.Sink.Begin()
	limit := r.PageSize
	if limit == 0 {
		limit = DefaultPageSize
	}
	version, err := r.pages(ctx, max(limit, 0))
	if listwatch.CodeOf(err) == listwatch.Expired && limit > 0 {
		// The history was compacted between two pages: what is too slow for it is asked for at once.
		r.Sink.Begin()
		version, err = r.pages(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	synced := listwatch.NewBookmark(listwatch.Describe(r.Source), version, true)
	r.progress = Progress{Initial: true}
	if err := r.take([]listwatch.Event{synced}, nil); err != nil {
		return nil, err
	}
	return r.open(ctx)
}

// pages gives the sink the objects of a list, and returns its version.
func (r *run) pages(ctx context.Context, limit int) (listwatch.Version, error) {
	q := r.from(r.selection())
	q.Limit = limit
	version := listwatch.Version(math.MaxUint64)
	for {
		page, err := r.Source.List(ctx, q)
		if err != nil {
			return 0, err
		}
		if page.Continue != "" && page.Continue == q.Continue {
			return 0, &listwatch.Error{
				Code: listwatch.Corrupt, Op: "list", Message: fmt.Sprintf("the page after %q is to be continued at the same place", q.Continue),
			}
		}
		// All pages should be of one version. Where they aren't, what was written between them comes again.
		version = min(version, page.Version)
		events := make([]listwatch.Event, len(page.Items))
		for i, o := range page.Items {
			events[i] = listwatch.Event{Type: listwatch.Added, Initial: true, Object: o, Version: o.Version}
		}
		if len(events) > 0 {
			if err := r.Sink.Take(events); err != nil {
				return 0, err
			}
		}
		if page.Continue == "" {
			return version, nil
		}
		q.Start, q.Version, q.Match, q.Continue = listwatch.Newest, 0, 0, page.Continue
	}
}

// judge decides whether the next stream can go on after err, or must begin with the state.
func (r *run) judge(err error) {
	if r.progress.Moved {
		r.progress.Moved, r.behind = false, time.Time{}
	}
	switch code := listwatch.CodeOf(err); {
	case !r.following && (code == listwatch.Expired || code == listwatch.NotYet):
		// The source can't give a state that is not older than what the sink has seen. Its newest is not older than any write that was
		// acknowledged, so it may be older than that only where versions have begun anew.
		r.restart(0)
	case r.following && (code == listwatch.Expired || code == listwatch.Corrupt || cantStream(err)):
		// An event that can't be understood would be as little understood after a resume, and it must not be passed over. And a version
		// that the source finds wrong, it finds wrong for ever.
		r.restart(r.progress.Newest())
	case code == listwatch.NotYet:
		r.judgeNotYet()
	}
}

// judgeNotYet bears with a source that is behind, for a while.
func (r *run) judgeNotYet() {
	switch {
	case r.behind.IsZero():
		r.behind = time.Now()
	case time.Since(r.behind) > patience:
		r.restart(0)
	}
}
