package relay

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A prober advances an epoch to a version that no event of the collection has, because the
// write was made to another collection of the upstream's database. It opens a second, short
// watch at the version that the relay has reached. The first bookmark of that watch proves
// that the watch has delivered all events up to the version of the bookmark, and the relay's
// own watch delivers the same events. It is safe for concurrent use.
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

const (
	// probeDelay is the time to wait for an event before a probe starts.
	probeDelay = 50 * time.Millisecond
	// probeTimeout is the timeout of the watches of a probe. Servers send a bookmark two
	// seconds before the timeout, as kube-apiserver does.
	probeTimeout = 3 * time.Second
)

// probeSource returns the source to probe, or nil if there is none. source is
// [Options.ProbeSource].
func probeSource(upstream, source listwatch.Source) listwatch.Source {
	if remote, ok := upstream.(*client.Remote); ok && source == nil {
		return remote.Connect(probeTimeout)
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

// probe watches until r.version is reached or the watch ends. It does not report errors,
// because the readers that wait for the version time out anyway.
func (p *prober) probe(ctx context.Context, r probeRequest) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout+readTimeout)
	defer cancel()
	defer context.AfterFunc(r.epoch.ctx, cancel)()
	start := r.epoch.Version()
	q := listwatch.Query{
		Start: listwatch.StartAt, Version: start, InitialEvents: listwatch.InitialEventsNo, Bookmarks: true,
	}
	watcher, err := p.source.Watch(ctx, q)
	if err == nil {
		defer watcher.Close()
		err = advance(ctx, r, watcher, start)
	}
	switch { // limit the rate of retries
	case err != nil:
		reflector.Sleep(ctx, readTimeout)
	case r.epoch.Version() < r.version: // the server has ended the watch
		reflector.Sleep(ctx, listwatch.Backoff{}.Delay(0))
	}
}

// advance advances the epoch of r to the versions of the watcher's bookmarks. seen is the version
// at which the watch started.
func advance(ctx context.Context, r probeRequest, watcher listwatch.Watcher, seen listwatch.Version) error {
	for e, err := range listwatch.All(ctx, watcher) {
		if err != nil {
			return err
		}
		if e.Type != listwatch.Bookmark {
			seen = e.Version
			continue
		}
		if err := r.epoch.check(e); err != nil {
			return err
		}
		// Before the epoch can advance, the relay's own watch must have delivered the events that
		// the probe has seen.
		if err := r.epoch.Wait(ctx, seen); err != nil {
			return err
		}
		r.epoch.Advance(e.Version)
		if e.Version >= r.version {
			return nil
		}
	}
	return ctx.Err()
}
