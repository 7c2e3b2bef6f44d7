package relay

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// Open returns a Relay that follows source until Close. It does not wait for the state.
// Lists and watches wait up to 3 seconds for the state, and then fail with
// [listwatch.Unavailable].
func Open(source listwatch.Source, o Options) *Relay {
	r := &Relay{options: o, passing: make(chan struct{}, maxDirect)}
	r.tasks.init()
	r.epochs.init()
	direct, policy := reflector.Direct(source)
	if !o.Projection.Empty() {
		direct = projected{direct, o.Projection}
	}
	r.upstream = &upstream{
		Source: direct, origin: source, tasks: &r.tasks,
		backfillVersions: max(cmp.Or(o.BackfillVersions, DefaultBackfillVersions), 0),
	}
	r.versions.Read = func() (reading, error) { return r.readUpstream(r.tasks.ctx) }
	r.versions.Start = func(f func()) error {
		if !r.tasks.start(func(context.Context) { f() }) {
			return errClosed
		}
		return nil
	}
	r.prober.tasks, r.prober.upstream, r.prober.source = &r.tasks, r.upstream, probeSource(source, o.ProbeSource)
	r.prober.report = o.Trace.probed
	writer := &logWriter{relay: r}
	f := &reflector.Reflector{
		Source: r.upstream, Policy: policy, Sink: writer,
		Differences: true, Backoff: o.Backoff, Lost: r.lost,
	}
	r.persist = newPersister(writer)
	r.tasks.start(func(ctx context.Context) {
		f.Resume = r.persist.load()
		r.tasks.start(r.persist.run)
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
// ended and the copy is saved. Only the first call has an effect. The error is always nil.
func (r *Relay) Close() error {
	r.tasks.stop()
	r.persist.save() // before the epochs, because a log that is closed cannot be read
	r.epochs.close()
	return nil
}

func (r *Relay) lost(err error, wait time.Duration, relist bool) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if err != io.EOF { // a clean end is no failure
		r.monitor.failed(err)
	}
	r.persist.lost(err)
	r.options.Trace.upstreamLost(err, wait, relist)
}
