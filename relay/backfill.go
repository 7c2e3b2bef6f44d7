package relay

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// backfill makes w begin with the state at an earlier version and continue with the events
// since then, so that the relay has a history from the start. If the upstream cannot serve
// that, w remains unchanged, and the relay starts without a history.
//
// The alternative is to begin with the newest state and to fetch the history when a client requests
// it. That would take a second watch for every version that clients resume from, and only a
// bookmark would show where the fetched history ends.
//
// refused is the version at which the previous backfill started, or zero if that backfill did not
// expire.
func (u *upstream) backfill(
	ctx context.Context, w *upstreamWatcher, q listwatch.Query, refused listwatch.Version,
) target {
	asked := time.Now()
	newest, err := u.Source.List(ctx, listwatch.Query{Limit: 1})
	if err != nil {
		return target{}
	}
	timeout := min(max(4*time.Since(asked), minRefusalTime), maxRefusalTime)
	if refused != 0 {
		timeout = maxRefusalTime
	}
	s := &backfillSearch{source: u.Source, tasks: u.tasks, newest: newest.Version, timeout: timeout}
	floor := max(q.Version, refused+1)
	if s.newest <= floor {
		return target{}
	}
	start := s.oldest(ctx, min(listwatch.Version(u.backfillVersions), s.newest-floor))
	if start == nil {
		return target{}
	}
	state, err := u.stateAt(ctx, start.version)
	if err != nil {
		_ = start.watcher.Close() // the watch is useless without the state
		return target{}
	}
	w.pending, w.first, w.Watcher = state, start.first, start.watcher
	u.progress = backfillProgress{start.version, newest.Version, refused != 0}
	return target{asked, newest.Version}
}

// stateAt returns the state at version v as the initial events of a watch, including the
// bookmark after them.
func (u *upstream) stateAt(ctx context.Context, v listwatch.Version) (events []listwatch.Event, err error) {
	q := listwatch.Query{
		Start: listwatch.StartAt, Version: v, Match: listwatch.MatchExact, Limit: reflector.DefaultPageSize,
	}
	for page, err := range reflector.Pages(ctx, u.Source, q) {
		if err != nil {
			return nil, err
		}
		if page.Version != v {
			return nil, corrupt("a list at version %d has version %d", v, page.Version)
		}
		events = append(events, reflector.InitialEvents(page.Items)...)
	}
	return append(events, listwatch.NewSynced(listwatch.Describe(u.Source), listwatch.State{Version: v}, 0)), nil
}

// The bounds of the time to wait for an error of a watch. A watch from an expired version
// usually fails immediately, so a watch without an error after this time counts as accepted. If it
// expires later, upstreamWatcher.Next requests another backfill, which waits for maxRefusalTime.
const (
	minRefusalTime = 50 * time.Millisecond
	maxRefusalTime = time.Second
)

// A backfillSearch finds the oldest version from which the upstream can be watched. A binary search
// with lists of one object finds the oldest version that can be listed. If that version cannot be
// watched, a second search tries watches from newer versions. Usually the first list and the first
// watch succeed.
type backfillSearch struct {
	source  listwatch.Source
	tasks   *tasks
	newest  listwatch.Version
	timeout time.Duration // the time to wait for the error of a watch
}

// A backfillStart is an open watch from which a backfill can start.
type backfillStart struct {
	version listwatch.Version // the version at which the watch starts
	watcher listwatch.Watcher
	first   chan firstRead // of capacity 1; receives the result of the first read of watcher
}

// oldest returns the watch with the oldest possible start, at most limit versions before the newest
// version. It returns nil if there is no such watch.
func (b *backfillSearch) oldest(ctx context.Context, limit listwatch.Version) *backfillStart {
	distance := searchMax(limit, func(distance listwatch.Version) bool { return b.canList(ctx, b.newest-distance) })
	if distance == 0 {
		return nil
	}
	best := b.watch(ctx, b.newest-distance)
	if best != nil {
		return best
	}
	// Some servers list versions that they cannot watch: Kubernetes lists from etcd and watches
	// from a cache with a shorter history. So search again, now for the oldest version that can be
	// watched.
	searchMax(distance-1, func(distance listwatch.Version) bool {
		older := b.watch(ctx, b.newest-distance)
		if older == nil {
			return false
		}
		if best != nil {
			_ = best.watcher.Close() // the older watch replaces this one
		}
		best = older
		return true
	})
	return best
}

// searchMax returns the greatest number up to limit for which ok returns true, or zero. If ok
// returns true for a number, it must return true for all lower numbers.
func searchMax(limit listwatch.Version, ok func(listwatch.Version) bool) listwatch.Version {
	low, high := listwatch.Version(0), limit+1
	for try := limit; low+1 < high; try = low + (high-low)/2 {
		if ok(try) {
			low = try
		} else {
			high = try
		}
	}
	return low
}

func (b *backfillSearch) canList(ctx context.Context, v listwatch.Version) bool {
	_, err := b.source.List(ctx, listwatch.Query{
		Start: listwatch.StartAt, Version: v, Match: listwatch.MatchExact, Limit: 1,
	})
	return err == nil
}

// watch returns a watch from v, or nil if the upstream refuses it.
func (b *backfillSearch) watch(ctx context.Context, v listwatch.Version) *backfillStart {
	w, err := b.source.Watch(ctx, listwatch.Query{
		Start: listwatch.StartAt, Version: v, InitialEvents: listwatch.InitialEventsNo, Bookmarks: true,
	})
	if err != nil {
		return nil
	}
	start := &backfillStart{v, w, make(chan firstRead, 1)}
	if !b.readFirst(start) {
		_ = w.Close() // it has already failed
		return nil
	}
	return start
}

// readFirst reads the first events of a watch. It returns false if the watch fails within the
// timeout. After the timeout the read continues, because canceling it would close the connection
// of a client.Remote.
func (b *backfillSearch) readFirst(start *backfillStart) bool {
	events := make([]listwatch.Event, reflector.DefaultPageSize)
	if p, ok := start.watcher.(listwatch.Poller); ok {
		n, err := p.Poll(events)
		start.first <- firstRead{events[:n], err}
		return err == nil
	}
	b.tasks.start(func(ctx context.Context) { // ends when the watch is closed, too
		n, err := start.watcher.Next(ctx, events)
		start.first <- firstRead{events[:n], err}
	})
	timeout := time.NewTimer(b.timeout)
	defer timeout.Stop()
	select {
	case r := <-start.first:
		start.first <- r
		return r.err == nil
	case <-timeout.C:
		return true
	}
}
