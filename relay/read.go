package relay

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// List implements [listwatch.Source] from the relay's own state. A list of a small newest state
// passes through to the upstream, and so does a list of a version that the relay does not reach
// within a moment.
func (r *Relay) List(ctx context.Context, q listwatch.Query) (page listwatch.Page, err error) {
	if err := r.checkShown(q); err != nil {
		return page, err
	}
	err = r.read(ctx, func(ep *epochCache) error {
		if q.Start == listwatch.StartAt {
			r.prober.request(ep, q.Version)
		}
		// A continue token may come from another relay that was ahead of this one, so catch up with
		// its version.
		if from, err := history.ParseContinueToken(q.Continue); err == nil {
			r.prober.request(ep, from.Version)
		}
		page, err = ep.List(ctx, q)
		return err
	})
	return page, err
}

// Watch implements [listwatch.Source] from the relay's own log. The call waits for the first state
// and, if the watch begins at the newest state, until the upstream reports its version. If the
// relay does not reach that version within a moment, the initial events come from the upstream.
func (r *Relay) Watch(ctx context.Context, q listwatch.Query) (w listwatch.Watcher, err error) {
	if err := r.checkShown(q); err != nil {
		return nil, err
	}
	err = r.read(ctx, func(ep *epochCache) error {
		if q.Start == listwatch.StartAt {
			r.prober.request(ep, q.Version)
		}
		if q.Since.Version <= ep.ambiguous {
			q.Since = listwatch.State{}
		}
		w, err = ep.Watch(ctx, q)
		return err
	})
	return w, err
}

// Get returns the newest object at key, or nil if there is none. It waits like a List of the newest
// state.
func (r *Relay) Get(ctx context.Context, key listwatch.Key) (o *listwatch.Object, err error) {
	err = r.read(ctx, func(ep *epochCache) error {
		o, err = ep.Get(ctx, key)
		return err
	})
	return o, err
}

// Compact drops the history: after that, a watch from a version before the relay's newest version
// fails with [listwatch.Expired]. Open watches that have read all events continue. Compact waits
// like a List of the newest state.
func (r *Relay) Compact(ctx context.Context) error {
	return r.read(ctx, func(ep *epochCache) error {
		_, err := ep.List(ctx, listwatch.Query{Limit: 1})
		if err == nil {
			ep.Compact()
		}
		return err
	})
}

// Describe implements [listwatch.Describer]. It returns the description of the upstream, with
// the epoch of the state that the relay serves.
func (r *Relay) Describe() listwatch.Description {
	if ep, _, _ := r.epochs.get(); ep != nil {
		return ep.Describe()
	}
	return r.describe("")
}

func (r *Relay) describe(epoch string) listwatch.Description {
	d := listwatch.Describe(r.upstream.Source)
	d.Epoch = epoch
	if r.options.Fields != nil {
		d.Fields, d.FieldRules = r.options.Fields, r.options.FieldRules
	}
	return d
}

// current returns the epoch to read from. It waits for the first state for up to readTimeout.
func (r *Relay) current(ctx context.Context) (*epochCache, error) {
	var timeout <-chan time.Time
	for {
		ep, changed, closed := r.epochs.get()
		if closed {
			return nil, errClosed
		}
		if ep != nil && !ep.isOver() {
			return ep, nil
		}
		if timeout == nil {
			timeout = time.After(readTimeout)
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, notReady(r.monitor.err())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
