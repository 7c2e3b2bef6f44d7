package relay

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// settle finds out whether ep has every write that was acknowledged before now, by a list of the
// newest state, and records that for Health. The log of ep stays at its version, because only
// events, bookmarks and probes show that it lacks no event: an object may have been created and
// deleted in between. settle is for upstreams whose watches send no bookmark.
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
