package relay

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/batchread"
	"github.com/listwatch/listwatch/internal/reflector"
)

// Options configure a Relay. The zero Options are usable.
type Options struct {
	// History limits the history that the relay keeps.
	History listwatch.Retention
	// BackfillVersions limits the history that the relay reads at its start, so that clients of an
	// earlier relay can resume. The history begins this number of versions before the newest
	// version, or at the oldest version that the upstream still has. Versions count the writes of
	// the whole database, so this is an upper bound on the number of events. If zero,
	// [DefaultBackfillVersions] is used. A negative value disables the backfill.
	BackfillVersions int
	// Fields are the paths that a field selector may use in addition to metadata.name and
	// metadata.namespace. If nil, the paths that the upstream describes are used. Their values
	// are read from the JSON of the objects, as in [watchcache.New].
	Fields []string
	// ProbeSource is a Source of the upstream's collection. Its watches must end or send a bookmark
	// within two seconds. The relay opens a short watch of ProbeSource if a reader waits for a
	// version that no event of the collection has. If nil and the upstream is a [client.Remote],
	// connections of the Remote with a short timeoutSeconds are used. If nil and the upstream is
	// another Source, such a reader waits for the next bookmark of the upstream.
	//
	// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
	ProbeSource listwatch.Source
	// CheckInterval is the time between two requests for the upstream's version, from which
	// [Health.Lag] is computed. If zero, [DefaultCheckInterval] is used. If negative, the
	// relay requests the version only for reads of the newest state.
	CheckInterval time.Duration
	// Backoff configures the delay between two watches of the upstream.
	Backoff listwatch.Backoff
	// Trace has hooks for events that readers do not see. It may be nil.
	Trace *Trace
}

// The defaults of [Options].
const (
	DefaultBackfillVersions = 10_000
	DefaultCheckInterval    = 10 * time.Second
)

// A Relay is a Source that follows another Source. Its watchers are [listwatch.Poller]s. It is
// safe for concurrent use. Use [Open] to create one.
type Relay struct {
	// Immutable after construction.
	upstream *upstream
	options  Options
	versions batchread.Reader[reading]
	prober   prober
	tasks    tasks
	epochs   epochs

	monitor monitor
}

var (
	_ listwatch.Source    = (*Relay)(nil)
	_ listwatch.Describer = (*Relay)(nil)
)

// Open returns a Relay that follows upstream until Close. It does not wait for the state.
// Lists and watches wait up to 3 seconds for the state, and then fail with
// [listwatch.Unavailable].
func Open(upstream listwatch.Source, o Options) *Relay {
	r := &Relay{options: o}
	r.tasks.init()
	r.epochs.init()
	source, policy := reflector.Direct(upstream)
	r.upstream = newUpstream(upstream, source, &r.tasks)
	r.upstream.backfillVersions = max(cmp.Or(o.BackfillVersions, DefaultBackfillVersions), 0)
	r.versions.Read = func() (reading, error) { return r.readUpstream(r.tasks.ctx) }
	r.versions.Start = func(f func()) error {
		if !r.tasks.start(func(context.Context) { f() }) {
			return errClosed
		}
		return nil
	}
	r.prober.tasks, r.prober.upstream, r.prober.source = &r.tasks, r.upstream, probeSource(upstream, o.ProbeSource)
	f := &reflector.Reflector{
		Source: r.upstream, Policy: policy, Sink: &logWriter{relay: r}, Backoff: o.Backoff, Lost: r.lost,
	}
	r.tasks.start(func(ctx context.Context) {
		_ = f.Run(ctx) // Run returns only the error of ctx
	})
	if interval := cmp.Or(o.CheckInterval, DefaultCheckInterval); interval > 0 {
		r.tasks.start(func(ctx context.Context) { r.check(ctx, interval) })
	}
	return r
}

// Close ends the watch of the upstream and every watch of r. The watches of r end cleanly
// after their readers have read the remaining events. Later lists and watches fail with
// [listwatch.Unavailable]. Close returns when the goroutines that use the upstream have
// ended. Only the first call has an effect. The error is always nil.
func (r *Relay) Close() error {
	r.epochs.close()
	r.tasks.stop()
	return nil
}

func (r *Relay) lost(err error, wait time.Duration, relist bool) {
	if errors.Is(err, context.Canceled) {
		return
	}
	r.monitor.failed(err)
	r.options.Trace.upstreamLost(err, wait, relist)
}
