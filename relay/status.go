package relay

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A Status says how a relay is doing at a moment.
type Health struct {
	// Ready is true once there is a state to read; it stays so.
	Ready bool
	// Following is true while there is a watch of the upstream. A [client.Remote] mends its streams by itself: then it is true while
	// that tries, and Heard and Err tell more.
	//
	// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
	Following bool
	// Version is how far the relay is, Upstream the newest version that the upstream is known to have. Versions are those of its database,
	// so the difference is not how many events are missing: most of them may be of other collections.
	Version, UpstreamVersion listwatch.Version
	// Epoch is that of the state.
	Epoch string
	// Behind is the most that the state can be behind: everything that was acknowledged by the origin longer ago is here. It is measured by
	// asking the upstream, at [Options.Check] and by readers, so it is about as large as the time between two questions where all is
	// well, and some of these where only other collections are written to; without probes, a minute or so. Negative: not known yet.
	Lag time.Duration
	// Heard is when something last came from the upstream: an event, a bookmark, an answer. Zero: never.
	LastHeard time.Time
	// Err is why the upstream could not be followed or asked, if nothing has come since; else nil.
	Err error
	// Objects and Watchers are how many there are, HistoryBytes what the history holds beside the objects, and Floor the oldest version
	// that a watch may begin from.
	Objects, Watchers int
	HistoryBytes      int64
	Floor             listwatch.Version
}

// Status returns how r is doing now.
func (r *Relay) Health() Health {
	s := Health{Lag: -1, Following: r.upstream.isOpen()}
	g, _, _ := r.latest.get()
	if g != nil {
		stats := g.log.Stats()
		s.Ready, s.Version, s.Epoch = true, g.head.Version(), g.description.Epoch
		s.Objects, s.Watchers, s.HistoryBytes, s.Floor = stats.Objects, stats.Watchers, stats.Bytes+stats.FrameCacheBytes, stats.Floor
	}
	r.progress.describe(&s)
	return s
}

// check asks the upstream how far it is, again and again.
func (r *Relay) check(ctx context.Context, every time.Duration) {
	timer := time.NewTicker(every)
	defer timer.Stop()
	for {
		if g, changed, _ := r.latest.get(); g == nil {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
		// What goes wrong is in the status. Where no event brings what is new, a probe must: the upstream's bookmarks are rare.
		if a, err := r.asker.newest(ctx); err == nil && a.generation != nil && !r.progress.isWithin(2*every) {
			r.prober.want(a.generation, a.version)
		}
		r.options.Trace.checked(r)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// A progress is what is known of how old the state is. Safe for concurrent use.
type progress struct {
	mu sync.Mutex
	// Guarded by mu.
	heardAt time.Time
	failure error
	fresh   time.Time // everything acknowledged by then is here; zero: not known
	oldest  sample    // the first that has not been reached
	last    sample    // the newest
}

// A sample is how far the upstream was when it was asked.
type sample struct {
	at         time.Time
	version    listwatch.Version
	generation *generation // nil: there is no sample
}

// heard notes that something has come from upstream.
func (p *progress) heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure, p.heardAt = nil, time.Now()
}

// failed notes why nothing comes.
func (p *progress) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

func (p *progress) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// sampled notes that the upstream was at v when it was asked at a moment, for g.
func (p *progress) sampled(at time.Time, v listwatch.Version, g *generation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g == nil {
		return
	}
	p.settle()
	p.last = sample{at, v, g}
	if p.oldest.generation == nil {
		p.oldest = p.last
	}
	p.settle()
}

// settle finds out which samples have been reached. mu is held.
func (p *progress) settle() {
	for _, s := range [...]sample{p.oldest, p.last} {
		if s.generation != nil && s.generation.head.Version() >= s.version {
			p.fresh, p.oldest = s.at, p.last
		}
	}
	if p.fresh.Equal(p.last.at) {
		p.oldest = sample{}
	}
}

// isWithin reports whether everything acknowledged longer than d ago is here.
func (p *progress) isWithin(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	return !p.fresh.IsZero() && time.Since(p.fresh) <= d
}

// forget drops what was known of versions that mean nothing any more.
func (p *progress) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fresh, p.oldest, p.last = time.Time{}, sample{}, sample{}
}

func (p *progress) describe(s *Health) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	s.UpstreamVersion, s.LastHeard, s.Err = max(p.last.version, s.Version), p.heardAt, p.failure
	if !p.fresh.IsZero() {
		s.Lag = time.Since(p.fresh)
	}
}
