package relay

import (
	"context"
	"errors"
	"fmt"
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
	report   func(err error)  // called when probes begin or cease to fail; see Trace.Probed

	mu sync.Mutex
	// Guarded by mu.
	pending  probeRequest
	running  bool
	failures int       // the number of failed probes in a row
	failure  error     // of the last probe
	retryAt  time.Time // probes that have failed several times in a row pause until then
}

// A probeRequest is a request to advance an epoch to a version.
type probeRequest struct {
	epoch    *epochCache
	version  listwatch.Version
	deadline time.Time // the time at which the last reader stops waiting
}

const (
	// probeDelay is the time to wait for an event before a probe starts.
	probeDelay = 50 * time.Millisecond
	// After maxProbeFailures failed probes in a row, the upstream counts as one that cannot be
	// probed, such as a kube-apiserver without a watch cache, or with an etcd that does not report
	// its progress. Then there is one probe in each probePause.
	maxProbeFailures = 2
	probePause       = time.Minute
)

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
	if !p.running && !time.Now().Before(p.retryAt) {
		p.running = p.tasks.start(p.run)
	}
}

// next returns the pending request. If the request has been fulfilled, no reader waits for it any
// longer, or probes pause, next returns false, and run must return.
func (p *prober) next(ctx context.Context) (probeRequest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, now := p.pending, time.Now()
	if r.epoch.isOver() || r.epoch.Version() >= r.version || !now.Before(r.deadline) || now.Before(p.retryAt) ||
		ctx.Err() != nil {
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

// probe advances the epoch of r to the version that a probe reaches. The readers that wait for the
// version do not need its error.
func (p *prober) probe(ctx context.Context, r probeRequest) {
	ctx, cancel := context.WithTimeout(ctx, reflector.ProbeTimeout+readTimeout)
	defer cancel()
	defer context.AfterFunc(r.epoch.ctx, cancel)()
	progress, err := reflector.Probe(ctx, p.source, listwatch.Selection{}, r.epoch.Version())
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
		if r.epoch.Version() < r.version {
			err = fmt.Errorf("the upstream is at version %d or later, and its watch at version %d", r.version, progress.Version)
		}
	}
	if r.epoch.isOver() || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	switch p.ended(err, r); { // limit the rate of retries
	case err == nil:
	case err == io.EOF || progress.Version != 0: // the server has ended the watch, or lags
		reflector.Sleep(ctx, listwatch.Backoff{}.Delay(0))
	default:
		reflector.Sleep(ctx, readTimeout)
	}
}

// ended records the result of a probe.
func (p *prober) ended(err error, r probeRequest) {
	if err == io.EOF {
		err = fmt.Errorf("a watch of %v ended without a bookmark", reflector.ProbeTimeout)
	}
	if r.epoch.Version() >= r.version {
		err = nil
	}
	isDown := listwatch.CodeOf(err) == listwatch.Unavailable || p.upstream.current() == nil
	if err != nil && isDown {
		// The failure says nothing about the bookmarks of the upstream. If it has just started, it
		// may have no history for the probe, and the relay's own watch has not found that out yet.
		return
	}
	p.mu.Lock()
	wasFailing := p.failures >= maxProbeFailures
	p.failure, p.retryAt = err, time.Time{}
	if p.failures++; err == nil {
		p.failures = 0
	}
	isFailing := p.failures >= maxProbeFailures
	if isFailing {
		p.retryAt = time.Now().Add(probePause)
	}
	p.mu.Unlock()
	if isFailing != wasFailing {
		p.report(err)
	}
}

// failing returns the error of the last probe if several in a row have failed, and otherwise nil.
func (p *prober) failing() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures < maxProbeFailures {
		return nil
	}
	return p.failure
}
