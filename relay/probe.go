package relay

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A prober advances an epoch to a version that no event of the collection has, because the
// write was made to another collection of the upstream's database; see [reflector.Probe]. It is
// safe for concurrent use.
type prober struct {
	// Immutable after construction.
	tasks    *tasks
	upstream *upstream
	source   listwatch.Source // nil if no source can be probed

	mu sync.Mutex
	// Guarded by mu.
	pending probeRequest
	running bool
}

// A probeRequest asks the prober to advance an epoch to a version.
type probeRequest struct {
	epoch    *epochCache
	version  listwatch.Version
	deadline time.Time // the time at which the last reader stops waiting
}

// probeDelay is the time to wait for an event before a probe starts.
const probeDelay = 50 * time.Millisecond

// probeSource returns the source to probe, or nil if there is none. source is
// [Options.ProbeSource].
func probeSource(upstream, source listwatch.Source) listwatch.Source {
	if source == nil {
		if probed, isRemote := reflector.ProbeSource(upstream); isRemote {
			return probed
		}
	}
	return source
}

// request advances ep to v in the background. It does not wait.
func (p *prober) request(ep *epochCache, v listwatch.Version) {
	if ep.Version() >= v {
		return
	}
	p.upstream.wake()
	if p.source == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending.epoch != ep || p.pending.version < v {
		p.pending.epoch, p.pending.version = ep, v
	}
	p.pending.deadline = time.Now().Add(readTimeout)
	if !p.running {
		p.running = p.tasks.start(p.run)
	}
}

// next returns the pending request. If the request has been fulfilled or no reader waits for it
// any longer, next returns false, and run must return.
func (p *prober) next(ctx context.Context) (probeRequest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pending
	if r.epoch.isOver() || r.epoch.Version() >= r.version || !time.Now().Before(r.deadline) || ctx.Err() != nil {
		p.pending, p.running = probeRequest{}, false
		return r, false
	}
	return r, true
}

func (p *prober) run(ctx context.Context) {
	for {
		r, ok := p.next(ctx)
		if !ok {
			return
		}
		wait, cancel := context.WithTimeout(ctx, probeDelay)
		err := r.epoch.Wait(wait, r.version)
		cancel()
		if err != nil {
			p.probe(ctx, r)
		}
	}
}

// probe advances the epoch of r to the version that a probe reaches. It does not report errors,
// because the readers that wait for the version time out anyway.
func (p *prober) probe(ctx context.Context, r probeRequest) {
	ctx, cancel := context.WithTimeout(ctx, reflector.ProbeTimeout+readTimeout)
	defer cancel()
	defer context.AfterFunc(r.epoch.ctx, cancel)()
	progress, err := reflector.Probe(ctx, p.source, listwatch.Query{}, r.epoch.Version())
	if err == nil {
		err = r.epoch.check(progress.Epoch)
	}
	if err == nil {
		// Before the epoch can advance, the relay's own watch must have delivered the events that
		// the probe has seen.
		err = r.epoch.Wait(ctx, progress.Seen)
	}
	if err == nil {
		r.epoch.Advance(progress.Version)
	}
	switch { // limit the rate of retries
	case err != nil && err != io.EOF:
		reflector.Sleep(ctx, readTimeout)
	case r.epoch.Version() < r.version: // the server has ended the watch, or lags
		reflector.Sleep(ctx, listwatch.Backoff{}.Delay(0))
	}
}
