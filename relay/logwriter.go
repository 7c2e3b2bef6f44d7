package relay

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A logWriter writes the events of the upstream into the log of the newest epoch.
type logWriter struct {
	// Immutable after construction.
	relay *Relay
	ctx   context.Context // the context of the relay

	// Owned by the Reflector.
	state      []*listwatch.Object // the initial events so far
	records    []history.Record    // reused by append
	newest     listwatch.Version   // the version of the newest event in the log
	incomplete bool                // the log lacks changes of its newest version
}

var _ reflector.Sink = (*logWriter)(nil)

// Begin implements [reflector.Sink].
func (w *logWriter) Begin() { w.state = nil }

// Take implements [reflector.Sink]. It appends all changes of a version to the log at once.
func (w *logWriter) Take(events []listwatch.Event) error {
	w.relay.monitor.heard()
	for len(events) > 0 {
		n := 1
		var err error
		switch e := events[0]; {
		case e.Initial:
			w.state = append(w.state, w.object(e.Object))
		case e.Type == listwatch.Synced:
			w.synced(e)
		case e.Type == listwatch.Bookmark:
			err = w.bookmark(e)
		default:
			for n < len(events) && isChange(events[n]) && events[n].Version == e.Version {
				n++
			}
			err = w.append(events[:n])
		}
		if err != nil {
			w.relay.upstream.skipBackfill()
			return err
		}
		events = events[n:]
	}
	return nil
}

func isChange(e listwatch.Event) bool {
	return e.Type != listwatch.Bookmark && e.Type != listwatch.Synced && !e.Initial
}

// object returns a copy of o with the values of the fields that selectors may use. The copy shares
// the bytes of o. Without such fields, object returns o itself.
func (w *logWriter) object(o *listwatch.Object) *listwatch.Object {
	if w.relay.options.Fields == nil {
		return o
	}
	fields := w.relay.fields.ReadFields(o.Data)
	return &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Fields: fields, Data: o.Data}
}

// synced applies the state that e completes.
func (w *logWriter) synced(e listwatch.Event) {
	r, v := w.relay, e.Version
	d := r.describe(epochOf(e, r.upstream.Source))
	to := r.upstream.takeTarget()
	ep := r.epochs.filling()
	incomplete := w.incomplete
	w.incomplete = false
	switch {
	case ep == nil || ep.description.Epoch != d.Epoch || v < w.newest || incomplete && v < ep.revision.Version():
		w.startEpoch(ep, d, v, to)
	case v > ep.revision.Version() || incomplete:
		ep.reset(w.state, v)
		if served, _, _ := r.epochs.get(); served == ep {
			r.options.Trace.replaced(v, len(w.state))
		}
	default:
		// The log has already reached this version through events or bookmarks, so no watch
		// has missed an event and the state is not needed.
	}
	r.upstream.synced(d.Epoch)
	w.newest, w.state = v, nil
}

// startEpoch starts an epoch with the state. The new epoch replaces previous, which may be nil.
func (w *logWriter) startEpoch(previous *epoch, d listwatch.Description, v listwatch.Version, to target) {
	r := w.relay
	ep := newEpoch(r.options, d, v)
	ep.reset(w.state, v)
	r.monitor.forget()
	if !to.asked.IsZero() {
		r.monitor.add(reading{to.asked, max(to.version, v), ep})
	}
	// Call fill before upstream.synced, because readUpstream first compares the epoch that synced
	// records, and then calls filling.
	r.epochs.fill(ep)
	r.upstream.synced(d.Epoch)
	var reason error
	if previous != nil {
		if reason = wentBack(previous.revision.Version(), v); previous.description.Epoch != d.Epoch {
			reason = epochChanged(previous.description.Epoch, d.Epoch)
		}
	}
	serve := func() {
		if r.epochs.serve(ep, reason) {
			now := ep.log.Stats()
			r.options.Trace.replaced(now.Newest, now.Objects)
		}
	}
	if to.version <= v {
		serve()
		return
	}
	r.tasks.start(func() {
		w.awaitBackfill(ep, to.version)
		serve()
	})
}

// awaitBackfill returns when ep has reached v, so that no reader gets a state that is known
// to be outdated. It also returns if ep makes no progress, because the relay then has no
// better state.
func (w *logWriter) awaitBackfill(ep *epoch, v listwatch.Version) {
	for {
		before := ep.revision.Version()
		w.relay.prober.request(ep, v)
		if err := ep.revision.Wait(w.ctx, v); err == nil || w.ctx.Err() != nil || ep.revision.Version() == before {
			return
		}
	}
}

// bookmark advances the version of the epoch.
func (w *logWriter) bookmark(e listwatch.Event) error {
	ep := w.relay.epochs.filling()
	if err := ep.check(e); err != nil {
		return err
	}
	ep.revision.Advance(e.Version)
	return nil
}

// append adds the changes of one version to the log.
func (w *logWriter) append(events []listwatch.Event) error {
	ep, v := w.relay.epochs.filling(), events[0].Version
	if v <= max(w.newest, ep.revision.Version()) {
		// Watchers have already received other changes of version v or of a later version, or a
		// bookmark at such a version, so these events are too late.
		w.incomplete = true
		ep.incomplete.Store(uint64(v))
		return corrupt("changes of version %d were received after the relay had passed it", v)
	}
	w.records = w.records[:0]
	for _, e := range events {
		record, err := w.record(ep, e)
		if err != nil {
			return err
		}
		w.records = append(w.records, record)
	}
	ep.log.Append(w.records...)
	ep.revision.Advance(v)
	w.newest = v
	clear(w.records)
	return nil
}

// record returns the record of e. If e does not match the state, an earlier event is
// missing, and record returns an error.
func (w *logWriter) record(ep *epoch, e listwatch.Event) (history.Record, error) {
	r := history.Record{Version: e.Version, Old: ep.log.Get(e.Object.Key)}
	if e.Type != listwatch.Deleted {
		r.New = w.object(e.Object)
	}
	if (e.Type == listwatch.Added) != (r.Old == nil) {
		return r, corrupt("%s %s at version %d does not match the state: an earlier event is missing", e.Type, e.Object.Key, e.Version)
	}
	return r, nil
}

// check returns an error if the bookmark e has an annotation with another epoch.
func (ep *epoch) check(e listwatch.Event) error {
	was, is := ep.description.Epoch, annotatedEpoch(e)
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
