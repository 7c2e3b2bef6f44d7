package informer

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

const (
	// probeDelay is the time for which a caller waits for an event or a bookmark before the
	// informer probes its Source.
	probeDelay = 200 * time.Millisecond
	// probeInterval is the time between two probes.
	probeInterval = time.Second
	// probeTimeout limits the duration of a probe, and settleTimeout the duration of a comparison.
	probeTimeout  = 2 * reflector.ProbeTimeout
	settleTimeout = 30 * time.Second
	// After maxProbeFailures failed probes in a row, the Source counts as one that cannot be
	// probed, such as the events of a kube-apiserver. Then there is one probe in each probePause.
	maxProbeFailures = 2
	probePause       = time.Minute
)

// startProbes probes the Source until w is notified or stop is called, unless w is notified within
// probeDelay. A probe advances the informer to the version of a write that has no event in the
// selection.
func (i *Informer[T]) startProbes(ctx context.Context, w *waiter) (stop func()) {
	if i.Source == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(probeDelay, func() { i.probeFor(ctx, w) })
	return func() { timer.Stop(); cancel() }
}

// probeFor probes the Source until w is notified or ctx ends. Only one call probes at a time, and
// its probes also serve the calls that wait.
func (i *Informer[T]) probeFor(ctx context.Context, w *waiter) {
	p := &i.state.probing
	select {
	case p.token <- struct{}{}:
		defer func() { <-p.token }()
	case <-ctx.Done():
		return
	}
	for !isClosed(w.reached) && ctx.Err() == nil {
		if !i.probe(ctx, w.version) {
			i.settle(ctx)
		}
		if isClosed(w.reached) || !reflector.Sleep(ctx, probeInterval) {
			return
		}
	}
}

// probe opens a second watch and advances the informer to the version of its bookmark. It returns
// false if the watch sends no bookmark, or if several probes in a row have not reached v. Errors
// are not reported, because the caller that waits for the version has a deadline of its own.
func (i *Informer[T]) probe(waiting context.Context, v listwatch.Version) (reached bool) {
	ctx, cancel := context.WithTimeout(waiting, probeTimeout)
	defer cancel()
	from, replaces := i.state.fifo.received()
	if from == 0 {
		return true // there is no state yet
	}
	// Between two bookmarks a conflated watch may lack an event, which a probe would not notice.
	memory := &i.state.probing
	if i.Conflate != 0 || time.Now().Before(memory.retryAt) {
		return false
	}
	source, _ := reflector.ProbeSource(i.Source)
	p, err := reflector.Probe(ctx, source, i.Selection, from)
	if err == nil && i.isSameEpoch(p.Epoch) {
		// The informer's own watch must have delivered the events that the probe has seen.
		if i.awaitOwn(ctx, max(from, p.Seen)) {
			i.state.fifo.advance(p.Version, replaces)
			i.publishProgress()
		}
		if p.Version >= v {
			memory.failures, memory.retryAt = 0, time.Time{}
			return true
		}
	}
	if waiting.Err() != nil {
		return true // no caller waits any more
	}
	if err != nil && !i.state.isWatching.Load() {
		// The failure says nothing about bookmarks: the Source is down, or has lost the history.
		// The informer's own watch is about to find out.
		return true
	}
	if memory.failures++; memory.failures >= maxProbeFailures {
		memory.retryAt = time.Now().Add(probePause)
		return false
	}
	return err == nil
}

// settle lists the newest state. If the local store equals that state, settle advances the informer
// to its version. It is for Sources whose watches send no bookmark.
func (i *Informer[T]) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	from, replaces := i.state.fifo.received()
	listed, err := reflector.ListVersions(ctx, i.Source, i.Selection)
	if err != nil || !i.isSameEpoch(listwatch.Describe(i.Source).Epoch) || !i.awaitOwn(ctx, max(from, listed.Seen)) {
		return
	}
	i.state.fifo.settle(listed.Newest, replaces, func() bool { return i.hasState(listed) })
	i.publishProgress()
}

// hasState reports whether the local store equals the listed state.
func (i *Informer[T]) hasState(listed reflector.Listed) bool {
	n := 0
	for item := range i.Items() {
		if v, ok := listed.Versions[item.Key]; !ok || v != item.Version {
			return false
		}
		n++
	}
	return n == len(listed.Versions)
}

// awaitOwn waits until the informer's own watch has reached v.
func (i *Informer[T]) awaitOwn(ctx context.Context, v listwatch.Version) bool {
	own := i.newWaiter(v)
	i.enlist(own)
	defer i.removeWaiter(own)
	return i.await(ctx, "probe", own.reached, nil) == nil
}
