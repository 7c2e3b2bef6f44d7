package relay

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/batchread"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/hooks"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A Relay is a Source that follows another Source. Its watchers are [listwatch.Poller]s. It is
// safe for concurrent use. Use [Open] to create one.
type Relay struct {
	// Immutable after construction.
	upstream *upstream
	options  Options
	versions batchread.Reader[reading]
	prober   prober
	passing  chan struct{} // holds a token for each list that is passed on; see direct
	tasks    tasks
	epochs   epochs
	persist  *persister // nil without Options.Persist

	monitor monitor
}

var (
	_ listwatch.Source    = (*Relay)(nil)
	_ listwatch.Describer = (*Relay)(nil)
)

// Open returns a Relay that follows source until Close. It does not wait for the state.
// Lists and watches wait up to 3 seconds for the state, and then fail with
// [listwatch.Unavailable].
func Open(source listwatch.Source, o Options) *Relay {
	o.Trace = hooks.Fill(o.Trace)
	r := &Relay{options: o, passing: make(chan struct{}, maxDirect)}
	r.tasks.ctx, r.tasks.cancel = context.WithCancel(context.Background())
	r.epochs.changed = make(chan struct{})
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
	r.prober.report = o.Trace.Probed
	writer := &logWriter{relay: r}
	f := &reflector.Reflector{
		Source: r.upstream, Policy: policy, Sink: writer,
		Differences: true, Backoff: o.Backoff, Lost: r.lost,
	}
	r.persist = newPersister(writer)
	r.tasks.start(func(ctx context.Context) {
		f.Resume = r.persist.load()
		if r.persist != nil {
			r.tasks.start(func(ctx context.Context) { r.persist.Run(ctx, r.persist.save) })
		}
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
	r.options.Trace.UpstreamLost(err, wait, relist)
}

// List implements [listwatch.Source] from the relay's own state. A list of a small newest state
// passes through to the upstream, and so does a list of a version that the relay does not reach
// within a moment.
func (r *Relay) List(ctx context.Context, q listwatch.Query) (page listwatch.Page, err error) {
	if err := r.checkShown(q); err != nil {
		return page, err
	}
	err = r.read(ctx, func(ep *epochCache) error {
		if q.Start == listwatch.StartAt {
			r.prober.request(ep, q.Version)
		}
		// A continue token may come from another relay that was ahead of this one, so catch up with
		// its version.
		if from, err := history.ParseContinueToken(q.Continue); err == nil {
			r.prober.request(ep, from.Version)
		}
		page, err = ep.List(ctx, q)
		return err
	})
	return page, err
}

// Watch implements [listwatch.Source] from the relay's own log. The call waits for the first state
// and, if the watch begins at the newest state, until the upstream reports its version. If the
// relay does not reach that version within a moment, the initial events come from the upstream.
func (r *Relay) Watch(ctx context.Context, q listwatch.Query) (w listwatch.Watcher, err error) {
	if err := r.checkShown(q); err != nil {
		return nil, err
	}
	err = r.read(ctx, func(ep *epochCache) error {
		if q.Start == listwatch.StartAt {
			r.prober.request(ep, q.Version)
		}
		if q.Since.Version <= ep.ambiguous {
			q.Since = listwatch.State{}
		}
		w, err = ep.Watch(ctx, q)
		return err
	})
	return w, err
}

// Get returns the newest object at key, or nil if there is none. It waits like a List of the newest
// state.
func (r *Relay) Get(ctx context.Context, key listwatch.Key) (o *listwatch.Object, err error) {
	err = r.read(ctx, func(ep *epochCache) error {
		o, err = ep.Get(ctx, key)
		return err
	})
	return o, err
}

// Compact drops the history: after that, a watch from a version before the relay's newest version
// fails with [listwatch.Expired]. Open watches that have read all events continue. Compact waits
// like a List of the newest state.
func (r *Relay) Compact(ctx context.Context) error {
	return r.read(ctx, func(ep *epochCache) error {
		_, err := ep.List(ctx, listwatch.Query{Limit: 1})
		if err == nil {
			ep.Compact()
		}
		return err
	})
}

// Describe implements [listwatch.Describer]. It returns the description of the upstream, with
// the epoch of the state that the relay serves.
func (r *Relay) Describe() listwatch.Description {
	if ep, _, _ := r.epochs.get(); ep != nil {
		return ep.Describe()
	}
	return r.describe("")
}

func (r *Relay) describe(epoch string) listwatch.Description {
	d := listwatch.Describe(r.upstream.Source)
	d.Epoch = epoch
	if r.options.Fields != nil {
		d.Fields, d.FieldRules = r.options.Fields, r.options.FieldRules
	}
	return d
}

// current returns the epoch to read from. It waits for the first state for up to readTimeout.
func (r *Relay) current(ctx context.Context) (*epochCache, error) {
	var timeout <-chan time.Time
	for {
		ep, changed, closed := r.epochs.get()
		if closed {
			return nil, errClosed
		}
		if ep != nil && !ep.isOver() {
			return ep, nil
		}
		if timeout == nil {
			timeout = time.After(readTimeout)
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, unavailable("the relay has not received the state of the upstream yet", r.monitor.err())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
