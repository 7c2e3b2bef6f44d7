package relay

import (
	"context"
	"errors"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// readTimeout limits the time that a read waits for the first state, for the upstream's
// response, and for a version.
const readTimeout = 3 * time.Second

// readUpstream requests the version of the upstream with a list of at most one object, so
// that the response is small. The version covers every write that was acknowledged before
// the request.
func (r *Relay) readUpstream(ctx context.Context) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at := time.Now()
	page, err := r.upstream.origin.List(ctx, listwatch.Query{Limit: 1})
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
// ep, or ctx ends. Readers must then start again with the new epoch.
func (r *Relay) newest(ctx context.Context, ep *epochCache) (listwatch.Version, error) {
	reached := ep.Version()
	now, err := r.versions.Get(ctx)
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
		case <-ctx.Done():
		}
	}
	switch {
	case err == nil:
		r.prober.request(ep, now.version)
		return now.version, nil
	case errors.Is(err, errClosed):
		return 0, err
	case listwatch.CodeOf(err) == listwatch.NotFound:
		return 0, notServed(err)
	case errors.Is(err, context.DeadlineExceeded):
		err = errNoResponse
	}
	return 0, unavailable("the relay cannot read the newest version of the upstream "+
		"(a read with resourceVersion=0 does not need it)", err)
}

// read calls f with the epoch to read from. If another epoch has replaced that epoch meanwhile and
// f failed, read calls f again.
func (r *Relay) read(ctx context.Context, f func(ep *epochCache) error) error {
	for {
		ep, err := r.current(ctx)
		if err != nil {
			return err
		}
		if err := f(ep); err == nil || !ep.isOver() || ctx.Err() != nil {
			return err
		}
	}
}

// maxDirect limits the lists that are passed on to the upstream at once. If thousands of readers
// request the newest state together, most of them wait for a probe, whose result serves all of
// them.
const maxDirect = 4

// direct lists the upstream for a reader of ep. Readers call it for a small newest state, or if the
// relay does not reach a version within a moment, because the upstream sends bookmarks rarely or
// never.
func (r *Relay) direct(ctx context.Context, ep *epochCache, q listwatch.Query) (page listwatch.Page, err error) {
	select {
	case r.passing <- struct{}{}:
		defer func() { <-r.passing }()
	case <-ctx.Done():
		return page, ctx.Err()
	}
	if !r.options.Projection.Empty() {
		q.Projection = r.options.Projection
	}
	at, reached := time.Now(), ep.Version()
	if page, err = r.upstream.origin.List(ctx, q); err == nil {
		err = r.upstream.checkEpoch()
	}
	isNewest := q.Start == listwatch.StartNewest && q.Continue == ""
	switch {
	case err != nil:
	case r.epochs.filling() != ep:
		err = errReplaced
	case isNewest && page.Version < reached:
		err = wentBack(reached, page.Version)
	case isNewest:
		r.monitor.heard()
		r.monitor.add(reading{at, page.Version, ep})
		r.prober.request(ep, page.Version)
	}
	return page, err
}

// initialWait returns the time that watches with many initial events wait for a probe.
func (r *Relay) initialWait() time.Duration {
	if r.prober.source == nil || r.prober.failing() != nil {
		return 0
	}
	return r.options.ProbeWait
}

// settle lists the newest state to find out whether ep has every write that was acknowledged before
// the call. If so, it records that for Health. The log of ep stays at its version, because only
// events, bookmarks and probes show that the log lacks no event: an object may have been created
// and deleted in between. settle is for upstreams whose watches send no bookmark.
func (r *Relay) settle(ctx context.Context, ep *epochCache) bool {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	defer context.AfterFunc(ep.ctx, cancel)()
	at := time.Now()
	shown := listwatch.Selection{Projection: r.options.Projection}
	listed, err := reflector.ListVersions(ctx, r.upstream.origin, shown)
	if err == nil {
		err = r.upstream.checkEpoch()
	}
	if err != nil || r.epochs.filling() != ep || ep.Version() < listed.Newest && ep.Wait(ctx, listed.Seen) != nil {
		return false
	}
	for !r.hasState(ep, listed) { // deletions may be on their way
		if !reflector.Sleep(ctx, settleInterval) {
			return false
		}
	}
	r.monitor.settled(reading{at, listed.Newest, ep})
	return true
}

const (
	// settleTimeout limits the time of a settle, and settleInterval is the time between two
	// comparisons.
	settleTimeout  = 30 * time.Second
	settleInterval = 50 * time.Millisecond
)

// hasState reports whether ep has reached the listed state.
func (r *Relay) hasState(ep *epochCache, listed reflector.Listed) bool {
	if ep.Version() >= listed.Newest {
		return true
	}
	objects := ep.Objects()
	for _, o := range objects {
		if v, ok := listed.Versions[o.Key]; !ok || v != o.Version {
			return false
		}
	}
	return len(objects) == len(listed.Versions)
}

// awaitBackfill returns when ep has reached v or has the newest state, so that no reader gets a
// state that is known to be outdated. It also returns if ep makes no progress, because the relay
// then has no better state.
func (r *Relay) awaitBackfill(ctx context.Context, ep *epochCache, v listwatch.Version) {
	for {
		before := ep.Version()
		r.prober.request(ep, v)
		soon, cancel := context.WithTimeout(ctx, probeDelay)
		err := ep.Wait(soon, v)
		cancel()
		if err == nil || r.settle(ctx, ep) {
			return
		}
		if err := ep.Wait(ctx, v); err == nil || ctx.Err() != nil || ep.Version() == before {
			return
		}
	}
}
