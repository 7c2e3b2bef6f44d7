package relay

import (
	"context"
	"errors"
	"time"

	"github.com/listwatch/listwatch"
)

// readTimeout limits the time that a read waits for the first state, for the upstream's
// response, and for a version.
const readTimeout = 3 * time.Second

// A reading is a version of the upstream at some time.
type reading struct {
	at      time.Time // when the request was sent; version covers all writes acknowledged before
	version listwatch.Version
	epoch   *epoch // the epoch of version; nil if the relay had no state at that time
}

// readUpstream requests the version of the upstream with a list of at most one object, so
// that the response is small. The version covers every write that was acknowledged before
// the request.
func (r *Relay) readUpstream(ctx context.Context) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at := time.Now()
	page, err := r.upstream.List(ctx, listwatch.Query{Limit: 1})
	if err == nil {
		err = r.upstream.checkEpoch()
	}
	if err != nil {
		r.monitor.failed(err)
		return reading{}, err
	}
	// checkEpoch has confirmed that the upstream has the same epoch as the relay's state.
	// logWriter.startEpoch calls fill before it records the name of a new epoch, so filling
	// returns the epoch of this version.
	now := reading{at, page.Version, r.epochs.filling()}
	r.monitor.heard()
	r.monitor.add(now)
	r.upstream.wake()
	return now, nil
}

// newest returns a version of ep that covers every write acknowledged before the call. If
// the upstream has another epoch or an older state, newest waits until a new epoch replaces
// ep. The caller must then start again with the new epoch.
func (r *Relay) newest(ctx context.Context, ep *epoch) (listwatch.Version, error) {
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reached := ep.revision.Version()
	now, err := r.versions.Get(bounded)
	switch {
	case err != nil:
	case now.epoch != ep:
		err = errReplaced
	case now.version < reached:
		err = wentBack(reached, now.version)
	}
	if listwatch.CodeOf(err) == listwatch.Expired {
		select {
		case <-ep.ctx.Done():
			return 0, nil
		case <-bounded.Done():
		}
	}
	switch {
	case err == nil || errors.Is(err, errClosed):
		return now.version, err
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case bounded.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		err = errNoResponse
	}
	return 0, noUpstreamVersion(err)
}

// resolve returns the epoch to read from, and a copy of q in which a version replaces Start
// Newest.
func (r *Relay) resolve(ctx context.Context, q listwatch.Query) (*epoch, listwatch.Query, error) {
	for {
		ep, err := r.current(ctx)
		if err != nil || q.Start != listwatch.Newest || q.Continue != "" {
			return ep, q, err
		}
		v, err := r.newest(ctx, ep)
		if err != nil {
			return nil, q, err
		}
		if !ep.isOver() {
			return ep, notOlderThan(q, v), nil
		}
	}
}

// notOlderThan converts q, which requests the newest state, to a query for a state at v or
// later.
func notOlderThan(q listwatch.Query, v listwatch.Version) listwatch.Query {
	initial := listwatch.No
	if q.SendsInitialEvents() {
		initial = listwatch.Yes
	}
	q.Start, q.Version, q.Match, q.InitialEvents = listwatch.At, v, listwatch.NotOlderThan, initial
	if v == 0 {
		q.Start = listwatch.Any
	}
	return q
}

// caughtUp returns the epoch to read from once it covers every write acknowledged before the call.
func (r *Relay) caughtUp(ctx context.Context) (*epoch, error) {
	for {
		ep, q, err := r.resolve(ctx, listwatch.Query{})
		if err != nil {
			return nil, err
		}
		r.prober.request(ep, q.Version)
		bounded, cancel := ep.within(ctx)
		err = ep.revision.Wait(bounded, q.Version)
		cancel()
		if !ep.isOver() || ctx.Err() != nil {
			return ep, err
		}
	}
}
