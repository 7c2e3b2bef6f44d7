package relay

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/watchcache"
)

// A logWriter writes the events of the upstream into the log of the newest epoch.
type logWriter struct {
	// Immutable after construction.
	relay *Relay

	// Owned by the Reflector.
	state      []*listwatch.Object // the initial events so far
	changes    []watchcache.Change // reused by append
	newest     listwatch.Version   // the version of the newest state or event in the log
	incomplete bool                // the log lacks changes of its newest version
}

var _ reflector.Sink = (*logWriter)(nil)

// Begin implements [reflector.Sink].
func (l *logWriter) Begin() { l.state = nil }

// Take implements [reflector.Sink]. It appends all changes of a version to the log at once.
func (l *logWriter) Take(events []listwatch.Event) error {
	l.relay.monitor.heard()
	for len(events) > 0 {
		n := 1
		var err error
		switch e := events[0]; {
		case e.Initial:
			l.state = append(l.state, e.Object)
		case e.Type == listwatch.Synced:
			err = l.synced(e)
		case e.Type == listwatch.Bookmark:
			err = l.bookmark(e)
		default:
			for n < len(events) && isChange(events[n]) && events[n].Version == e.Version {
				n++
			}
			err = l.append(events[:n])
		}
		if err != nil {
			l.relay.upstream.skipBackfill()
			return err
		}
		events = events[n:]
	}
	return nil
}

func isChange(e listwatch.Event) bool {
	return e.Type != listwatch.Bookmark && e.Type != listwatch.Synced && !e.Initial
}

// synced applies the state that consists of the initial events in l.state. The bookmark e has ended
// these events.
func (l *logWriter) synced(e listwatch.Event) error {
	r, v := l.relay, e.Version
	d := r.describe(epochOf(e, r.upstream.Source))
	to := r.upstream.takeTarget()
	ep := r.epochs.filling()
	var err error
	switch {
	case ep == nil || ep.name != d.Epoch || v < l.newest || l.incomplete && v < ep.Version():
		err = l.startEpoch(ep, d, v, to)
	case v > ep.Version() || l.incomplete:
		err = ep.Replace(l.state, v)
		if served, _, _ := r.epochs.get(); err == nil && served == ep {
			r.options.Trace.replaced(v, len(l.state))
		}
	default:
		// The log has already reached this version through events or bookmarks, so no watch
		// has missed an event and the state is not needed.
	}
	if err != nil {
		return err
	}
	r.upstream.synced(d.Epoch)
	l.incomplete = false
	l.newest, l.state = v, nil
	return nil
}

// startEpoch starts an epoch with the initial events in l.state, at version v. Readers get the new
// epoch in place of the previous one, which may be nil, when the new epoch has reached the target.
func (l *logWriter) startEpoch(previous *epochCache, d listwatch.Description, v listwatch.Version, to target) error {
	r := l.relay
	ep := r.newEpoch(d)
	if err := ep.Replace(l.state, v); err != nil {
		return err
	}
	r.monitor.forget()
	if !to.asked.IsZero() {
		r.monitor.add(reading{to.asked, max(to.version, v), ep})
	}
	// Call fill before upstream.synced: readUpstream first compares the epoch that synced records,
	// and then calls filling, which must return the same epoch.
	r.epochs.fill(ep)
	r.upstream.synced(d.Epoch)
	var reason error
	if previous != nil {
		if reason = wentBack(previous.Version(), v); previous.name != d.Epoch {
			reason = epochChanged(previous.name, d.Epoch)
		}
	}
	serve := func() {
		if r.epochs.serve(ep, reason) {
			now := ep.Stats()
			r.options.Trace.replaced(now.Newest, now.Objects)
		}
	}
	if to.version <= v {
		serve()
		return nil
	}
	r.tasks.start(func(ctx context.Context) {
		r.awaitBackfill(ctx, ep, to.version)
		serve()
	})
	return nil
}

// newEpoch returns an epochCache without a state.
func (r *Relay) newEpoch(d listwatch.Description) *epochCache {
	ep := &epochCache{name: d.Epoch}
	ep.ctx, ep.cancel = context.WithCancel(context.Background())
	ep.Cache = watchcache.New(d, watchcache.Options{
		History:  r.options.History,
		Newest:   func(ctx context.Context) (listwatch.Version, error) { return r.newest(ctx, ep) },
		Verbatim: true,
	})
	return ep
}

// awaitBackfill returns when ep has reached v, so that no reader gets a state that is known
// to be outdated. It also returns if ep makes no progress, because the relay then has no
// better state.
func (r *Relay) awaitBackfill(ctx context.Context, ep *epochCache, v listwatch.Version) {
	for {
		before := ep.Version()
		r.prober.request(ep, v)
		if err := ep.Wait(ctx, v); err == nil || ctx.Err() != nil || ep.Version() == before {
			return
		}
	}
}

// bookmark advances the version of the epoch.
func (l *logWriter) bookmark(e listwatch.Event) error {
	ep := l.relay.epochs.filling()
	if err := ep.check(e); err != nil {
		return err
	}
	ep.Advance(e.Version)
	return nil
}

// append adds the changes of one version to the log.
func (l *logWriter) append(events []listwatch.Event) error {
	ep, v := l.relay.epochs.filling(), events[0].Version
	if v <= ep.Version() {
		// Watchers have already received other changes of version v or of a later version, or a
		// bookmark at such a version, so these events are too late. Apply returns an error, and
		// makes the cache refuse watches from the version that it has reached.
		l.incomplete = true
		// Ignore that error, because the error below is clearer.
		_ = ep.Apply(watchcache.Change{Version: v, Key: events[0].Object.Key})
		return corrupt("changes of version %d were received after the relay had passed it", v)
	}
	l.changes = l.changes[:0]
	for _, e := range events {
		change, err := change(ep, e)
		if err != nil {
			return err
		}
		l.changes = append(l.changes, change)
	}
	err := ep.Apply(l.changes...)
	clear(l.changes)
	if err == nil {
		l.newest = v
	}
	return err
}

// change converts e to a change for the cache. If e does not match the state, an earlier event is
// missing, and change returns an error.
func change(ep *epochCache, e listwatch.Event) (watchcache.Change, error) {
	exists := ep.Lookup(e.Object.Key) != nil
	if (e.Type == listwatch.Added) == exists {
		return watchcache.Change{}, corrupt("%s %s at version %d does not match the state: an earlier event is missing",
			e.Type, e.Object.Key, e.Version)
	}
	if e.Type == listwatch.Deleted {
		return watchcache.Change{Version: e.Version, Key: e.Object.Key}, nil
	}
	return watchcache.Change{Version: e.Version, Object: e.Object}, nil
}

// check returns an error if bookmark has an annotation with another epoch.
func (e *epochCache) check(bookmark listwatch.Event) error {
	was, is := e.name, annotatedEpoch(bookmark)
	if was == "" || is == "" || was == is {
		return nil
	}
	return epochChanged(was, is)
}

// epochOf returns the epoch in the annotation of the bookmark e, or the epoch of source if
// e has none.
func epochOf(e listwatch.Event, source listwatch.Source) string {
	if epoch := annotatedEpoch(e); epoch != "" {
		return epoch
	}
	return listwatch.Describe(source).Epoch
}

func annotatedEpoch(e listwatch.Event) string {
	epoch, err := rawjson.String(rawjson.Lookup(e.Object.Data, "metadata", "annotations", listwatch.AnnotationEpoch))
	if err != nil {
		return ""
	}
	return epoch
}
