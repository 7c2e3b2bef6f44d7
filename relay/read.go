package relay

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// List implements [listwatch.Source] from the relay's own state. A list of the newest state
// waits up to 3 seconds for the version that the upstream reports, and then fails with
// [listwatch.NotYet].
func (r *Relay) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	for {
		ep, resolved, err := r.resolve(ctx, q)
		if err != nil {
			return listwatch.Page{}, err
		}
		bounded, cancel := ep.within(ctx)
		r.awaitPage(bounded, ep, resolved)
		page, err := ep.log.List(bounded, resolved)
		cancel()
		if !ep.isOver() || ctx.Err() != nil {
			return page, err
		}
	}
}

// awaitPage waits until ep has reached the version of q. A continue token may come from
// another relay that was ahead of this one. If ep does not reach the version in time, the
// list reports that the token has expired.
func (r *Relay) awaitPage(ctx context.Context, ep *epoch, q listwatch.Query) {
	if q.Start == listwatch.At {
		r.prober.request(ep, q.Version)
	}
	if q.Continue == "" {
		return
	}
	if from, err := history.ParseContinueToken(q.Continue); err == nil {
		r.prober.request(ep, from.Version)
		_ = ep.revision.Wait(ctx, from.Version) // the list checks the version as well
	}
}

// Watch implements [listwatch.Source] from the relay's own log. The call waits for the first state
// and, if the watch begins at the newest state, until the upstream reports its version. The
// returned Watcher then waits until the relay has reached that version.
func (r *Relay) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	q.Continue = "" // a watch ignores it
	ep, q, err := r.resolve(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.Start == listwatch.At {
		if v := listwatch.Version(ep.incomplete.Load()); v != 0 && q.Version == v && !q.SendsInitialEvents() {
			return nil, incompleteVersion(v)
		}
		r.prober.request(ep, q.Version)
	}
	return ep.log.Watch(ctx, q)
}

// Get returns the newest object at key, or nil if there is none. It waits like a List of the newest
// state.
func (r *Relay) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	ep, err := r.caughtUp(ctx)
	if err != nil {
		return nil, err
	}
	return ep.log.Get(key), nil
}

// Compact drops the history: after that, a watch from a version before the relay's newest one fails
// with [listwatch.Expired]. Open watches that have read all events continue. Compact waits like a
// List of the newest state.
func (r *Relay) Compact(ctx context.Context) error {
	ep, err := r.caughtUp(ctx)
	if err != nil {
		return err
	}
	ep.log.Compact()
	return nil
}

// Describe implements [listwatch.Describer]. It returns the description of the upstream, with
// the epoch of the state that the relay serves.
func (r *Relay) Describe() listwatch.Description {
	if ep, _, _ := r.epochs.get(); ep != nil {
		return ep.description
	}
	return r.describe("")
}

func (r *Relay) describe(epoch string) listwatch.Description {
	d := listwatch.Describe(r.upstream.Source)
	d.Epoch = epoch
	if r.options.Fields != nil {
		d.Fields = r.options.Fields
	}
	return d
}

// current returns the epoch to read from. It waits for the first state for up to readTimeout.
func (r *Relay) current(ctx context.Context) (*epoch, error) {
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
