package reflector

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/listwatch/listwatch"
)

// Open opens the first watch, which Run then reads. If Open was not called, Run opens the
// watch itself. If a call of Open before Run fails, Policy.Decide is not called.
//
// The watch resumes at r.Resume or begins with the state. A Source that cannot stream its state is
// listed, and then watched from the version of the list.
func (r *Reflector) Open(ctx context.Context) (err error) {
	q := listwatch.Query{Selection: r.Query.Selection, Bookmarks: true, Conflate: r.Query.Conflate}
	r.current.since = 0
	if r.Resume.Synced {
		q.Start, q.Version, q.InitialEvents = listwatch.StartAt, r.Resume.Version, listwatch.InitialEventsNo
		r.current.watcher, err = r.Source.Watch(ctx, q)
		return err
	}
	if r.watchList().Unsupported() {
		if err = r.listAndWatch(ctx); !r.Resume.Synced && mayRefuseList(err) {
			r.watchList().MarkSupported()
		}
		return err
	}
	q.Start, q.Version, q.InitialEvents = r.Query.Start, r.Query.Version, listwatch.InitialEventsYes
	q.Since = r.Query.Since
	w, err := r.Source.Watch(ctx, q)
	switch {
	case err == nil:
		r.current.watcher, r.Resume, r.current.since = w, ResumePoint{}, q.Since.Version
		r.begin()
	case r.Policy.mayRefuseWatchList(err):
		// If the list succeeds, the Source cannot stream its state. If the Source refused the
		// watch for another reason, the list fails as well.
		if err = r.listAndWatch(ctx); err == nil {
			r.watchList().MarkUnsupported()
		}
	}
	return err
}

func (r *Reflector) begin() { r.Sink.Begin(cmp.Or(r.current.why, WholeFirst)) }

// Close closes the watch of Open, for callers that do not call Run afterwards.
func (r *Reflector) Close() error { return r.current.watcher.Close() }

// mayRefuseList reports whether err, which a list returned, may mean that the Source or its
// permissions allow only watches.
func mayRefuseList(err error) bool {
	return mayRefuseWatchList(err) || errors.Is(err, listwatch.Forbidden) || errors.Is(err, listwatch.NotFound)
}

func (r *Reflector) watchList() *WatchListSupport {
	if r.Policy.WatchList == nil {
		r.Policy.WatchList = new(WatchListSupport)
	}
	return r.Policy.WatchList
}

// listAndWatch passes the state to the sink page by page, and opens a watch of the changes after
// that state.
func (r *Reflector) listAndWatch(ctx context.Context) error {
	limit := r.PageSize
	if limit == 0 {
		limit = DefaultPageSize
	}
	version, err := r.list(ctx, max(limit, 0))
	if listwatch.CodeOf(err) == listwatch.Expired && limit > 0 {
		// The history was compacted between two pages. A list without pages cannot fail for
		// that reason.
		version, err = r.list(ctx, 0)
	}
	if err != nil {
		return err
	}
	r.Resume = ResumePoint{}
	synced := listwatch.NewSynced(listwatch.Describe(r.Source), listwatch.State{Version: version}, 0)
	if _, err := r.take([]listwatch.Event{synced}, nil); err != nil {
		r.requestState(version, r.current.why)
		return err
	}
	return r.Open(ctx)
}

// list passes the objects of a list to the sink and returns the version of the list.
func (r *Reflector) list(ctx context.Context, limit int) (listwatch.Version, error) {
	r.begin()
	q := listwatch.Query{Selection: r.Query.Selection, Start: r.Query.Start, Version: r.Query.Version, Limit: limit}
	version := listwatch.Version(math.MaxUint64)
	for page, err := range Pages(ctx, r.Source, q) {
		if err != nil {
			return 0, err
		}
		// All pages should have the same version. If they do not, a watch from the lowest
		// version repeats the changes between them.
		version = min(version, page.Version)
		if len(page.Items) == 0 {
			continue
		}
		if err := r.Sink.Take(InitialEvents(page.Items)); err != nil {
			return 0, err
		}
	}
	return version, nil
}
