package relay

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
)

// Health is the condition of a Relay at some time.
type Health struct {
	// Ready is true once the relay has a state, and then remains true, whatever the lag is. The
	// readiness check of the command listwatch relay also considers the lag.
	Ready bool
	// Following is true while a watch of the upstream is open. It is false while the relay
	// reconnects.
	Following bool
	// Version is the version that the relay has reached, and UpstreamVersion the newest version
	// that the upstream has reported. Versions count the writes of the whole database, so their
	// difference is not the number of missing events.
	Version, UpstreamVersion listwatch.Version
	// Epoch is the epoch of the state.
	Epoch string
	// Lag is an upper bound on the age of the state: the relay has every write that the origin
	// acknowledged longer than Lag ago. The relay measures it by requesting the version of the
	// upstream, at [Options.CheckInterval] and for reads of the newest state. While the relay keeps
	// up, Lag is about the time between two of these requests. If only other collections of the
	// database change, Lag is a few times as long. If no probe succeeds, the relay lists the
	// upstream whenever Lag exceeds three intervals, and compares. Lag is negative if it is not
	// known yet.
	Lag time.Duration
	// LastHeard is the time of the last event, bookmark or response of the upstream. It is
	// zero if there was none.
	LastHeard time.Time
	// Err is the last error of a watch of the upstream or of a request to it. It is nil if
	// the upstream has sent anything since then.
	Err error
	// Objects is the number of objects, and Watchers the number of open watches. Until Ready is
	// true, Objects is the number of objects and events received for the first state.
	Objects, Watchers int
	// HistoryBytes is the memory of the history, without the current objects.
	HistoryBytes int64
	// Floor is the oldest version from which a watch can start.
	Floor listwatch.Version
}

// Health returns the current condition of r.
func (r *Relay) Health() Health {
	h := Health{Lag: -1, Following: r.upstream.current() != nil}
	ep, _, _ := r.epochs.get()
	if ep != nil {
		stats := ep.Stats()
		h.Ready, h.Version, h.Epoch = true, ep.Version(), ep.name
		h.Objects, h.Watchers, h.HistoryBytes, h.Floor = stats.Objects, stats.Watchers, stats.HistoryBytes, stats.Oldest
	}
	r.monitor.describe(&h)
	return h
}

// ProbeErr returns the reason why several probes in a row have failed, for example that the
// upstream sends no bookmarks. Reads of the newest state then pass through to the upstream until
// an event arrives. It returns nil if probes work, or were not needed yet.
func (r *Relay) ProbeErr() error { return r.prober.failing() }

// describe sets the fields of h that m knows. h.Version must be set.
func (m *monitor) describe(h *Health) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
	h.UpstreamVersion, h.LastHeard, h.Err = max(m.last.version, h.Version), m.lastHeard, m.failure
	if !h.Ready {
		h.Objects = m.received
	}
	if !m.caughtUp.IsZero() {
		h.Lag = time.Since(m.caughtUp)
	}
}

// Stats returns the current sizes of r. Before the first state they are zero.
func (r *Relay) Stats() listwatch.Stats {
	ep, _, _ := r.epochs.get()
	if ep == nil {
		return listwatch.Stats{}
	}
	return ep.Stats()
}

// check requests the version of the upstream at each interval until ctx ends.
func (r *Relay) check(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if ep, changed, _ := r.epochs.get(); ep == nil {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
		// If the read fails, Health reports its error. If no event advances the relay to the
		// version that was read, a probe must do so, because bookmarks of the upstream are rare.
		if now, err := r.versions.Get(ctx); err == nil && now.epoch != nil && !r.monitor.lagsAtMost(2*interval) {
			r.prober.request(now.epoch, now.version)
			if (r.prober.source == nil || r.prober.failing() != nil) && !r.monitor.lagsAtMost(3*interval) {
				r.settle(ctx, now.epoch)
			}
		}
		r.options.Trace.Checked(r.Health())
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
