package informer

import (
	"context"
	"time"

	"github.com/listwatch/listwatch/internal/reflector"
)

const (
	// probeDelay is the time for which a caller waits for an event or a bookmark before the
	// informer probes its Source.
	probeDelay = 200 * time.Millisecond
	// probeInterval is the time between two probes.
	probeInterval = time.Second
	// probeTimeout limits the duration of a probe.
	probeTimeout = 2 * reflector.ProbeTimeout
)

// startProbes probes the Source until w is notified or stop is called, unless w is notified within
// probeDelay. A probe advances the informer to the version of a write that has no event in the
// selection.
//
// Between two bookmarks a conflated watch may lack an event, which a probe would not notice.
func (i *Informer[T]) startProbes(ctx context.Context, w *waiter) (stop func()) {
	if i.Source == nil || i.Query.Conflate != 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(probeDelay, func() { i.probeFor(ctx, w) })
	return func() { timer.Stop(); cancel() }
}

// probeFor probes the Source until w is notified or ctx ends. Only one call probes at a time. The
// remaining calls profit from its probes.
func (i *Informer[T]) probeFor(ctx context.Context, w *waiter) {
	select {
	case i.state.probing <- struct{}{}:
		defer func() { <-i.state.probing }()
	case <-ctx.Done():
		return
	}
	for !isClosed(w.reached) && ctx.Err() == nil {
		i.probe(ctx)
		if isClosed(w.reached) || !reflector.Sleep(ctx, probeInterval) {
			return
		}
	}
}

// probe advances the informer to the version that a second watch reaches. Errors are not reported,
// because the caller that waits for the version has a deadline of its own.
func (i *Informer[T]) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	from, replaces := i.state.fifo.received()
	if from == 0 {
		return
	}
	source, _ := reflector.ProbeSource(i.Source)
	p, err := reflector.Probe(ctx, source, i.Query, from)
	if err != nil || !i.isSameEpoch(p.Epoch) {
		return
	}
	// The informer's own watch must have delivered the events that the probe has seen.
	own := i.newWaiter(max(from, p.Seen))
	if i.enlist(own); i.await(ctx, "probe", own.reached, nil) == nil {
		i.state.fifo.advance(p.Version, replaces)
		i.publishProgress()
	}
	i.removeWaiter(own)
}
