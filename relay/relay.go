package relay

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/store"
)

// Options are what a Relay is made with. The zero Options are sound.
type Options struct {
	// HistoryAge is how long an event can be watched from once it is here. Zero: 5 minutes; negative: for ever.
	HistoryAge time.Duration
	// HistoryBytes is how many bytes the history may hold beside the current objects. Zero: 256 MiB; negative: unlimited.
	HistoryBytes int64
	// FrameBytes is how many of these bytes may be encoded events, kept for the next watcher, and how many more those with
	// which watches begin. Zero: a quarter of HistoryBytes; negative: unlimited.
	FrameCacheBytes int64
	// Lookback is how many versions before the newest one the relay begins with, where the upstream still has them: whoever was cut off
	// when a relay was restarted can go on with it. Versions are those of the upstream's database, so this is the most events that there
	// can be; they are read once. Zero: 10,000; negative: none.
	BackfillVersions int
	// Fields are the paths that a field selector may name beside metadata.name and metadata.namespace, as in [store.Resource]. Nil: those
	// that the upstream describes.
	Fields []string
	// Probe is the same collection as the upstream, whose watches end or bring bookmarks within a second or two: it is watched for a moment
	// where a reader waits for a version that no event brings. Nil: for a [client.Remote] one of the same URL with timeoutSeconds; for
	// any other upstream none, and such a reader waits for the upstream's next bookmark.
	//
	// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
	ProbeSource listwatch.Source
	// Check is how often the upstream is asked how far it is, for [Relay.Status]. Zero: 10 seconds; negative: only when somebody reads the
	// newest state.
	CheckInterval time.Duration
	// Backoff is how long to wait before another try to follow the upstream.
	Backoff listwatch.Backoff
	// Trace is told what happens; nil: nobody.
	Trace *Trace
}

// The defaults of [Options].
const (
	DefaultBackfillVersions = 10_000
	DefaultCheckInterval    = 10 * time.Second
)

// A Relay is a Source that follows a Source. Its watchers are [listwatch.Poller]s. It is safe for concurrent use. Make one with [Open].
type Relay struct {
	// Immutable after construction.
	upstream *upstream
	options  Options
	fields   store.CollectionSpec // reads Options.Fields
	asker    asker
	prober   prober
	stop     context.CancelFunc // ends all goroutines
	tasks    tasks
	latest   latest

	progress progress
}

var (
	_ listwatch.Source    = (*Relay)(nil)
	_ listwatch.Describer = (*Relay)(nil)
)

// Open returns a Relay that follows upstream until Close. It does not wait: lists and watches do, until the state is there, for 3 seconds,
// and are then Unavailable.
func Open(upstream listwatch.Source, o Options) *Relay {
	ctx, stop := context.WithCancel(context.Background())
	r := &Relay{options: o, stop: stop, fields: store.CollectionSpec{Fields: o.Fields}}
	r.upstream = newUpstream(upstream, cmp.Or(o.BackfillVersions, DefaultBackfillVersions))
	r.asker.ask = r.askUpstream
	r.asker.ctx, r.asker.tasks = ctx, &r.tasks
	r.prober.ctx, r.prober.tasks, r.prober.upstream = ctx, &r.tasks, r.upstream
	r.prober.probeBy(upstream, o.ProbeSource)
	r.latest.init()
	follower := &reflector.Reflector{Source: r.upstream, Sink: &sink{relay: r, ctx: ctx}, Backoff: o.Backoff, Lost: r.lost}
	r.tasks.start(func() {
		_ = follower.Run(ctx) // it ends with ctx
	})
	if every := cmp.Or(o.CheckInterval, DefaultCheckInterval); every > 0 {
		r.tasks.start(func() { r.check(ctx, every) })
	}
	return r
}

// Close ends all: the watch of the upstream, and every watcher, cleanly, once it has read what is there. Lists and watches are Unavailable
// from then on. It returns when nothing of the relay goes on any more; calling it again does nothing. The error is always nil.
func (r *Relay) Close() error {
	r.latest.close()
	r.stop()
	r.tasks.end()
	r.prober.release()
	return nil
}

func (r *Relay) lost(err error, wait time.Duration, again bool) {
	if errors.Is(err, context.Canceled) {
		return
	}
	r.progress.failed(err)
	r.options.Trace.lost(err, wait, again)
}
