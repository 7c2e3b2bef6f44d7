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
	return 0, noUpstreamVersion(err)
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
// request the newest state together, most of them wait until a probe has settled it for all.
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
