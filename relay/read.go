package relay

import (
	"context"
	"errors"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// List implements [listwatch.Source], from what is here. The newest state is waited for as far as the upstream says that there is one.
func (r *Relay) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	for {
		g, err := r.current(ctx)
		if err != nil {
			return listwatch.Page{}, err
		}
		exact := q
		if q.Start == listwatch.Newest && q.Continue == "" {
			if exact, err = r.pin(ctx, g, q); err != nil {
				return listwatch.Page{}, err
			}
		}
		if g.isOver() {
			continue
		}
		bounded, cancel := g.within(ctx)
		r.awaitPage(bounded, g, exact)
		page, err := g.log.List(bounded, exact)
		cancel()
		if !g.isOver() || ctx.Err() != nil {
			return page, err
		}
	}
}

// awaitPage helps g on to where q can be answered. A list that was begun elsewhere may be of a version that is still to come; if it does
// not come in good time, the list is told that it can't go on.
func (r *Relay) awaitPage(ctx context.Context, g *generation, q listwatch.Query) {
	if q.Start == listwatch.At {
		r.prober.want(g, q.Version)
	}
	if q.Continue == "" {
		return
	}
	if from, err := history.ParseContinueToken(q.Continue); err == nil {
		r.prober.want(g, from.Version)
		_ = g.head.Wait(ctx, from.Version)
	}
}

// Watch implements [listwatch.Source], from what is here. It waits for nothing but the first state and, where it is to begin with the newest,
// for the upstream to say which that is; the Watcher waits for the version.
func (r *Relay) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	for {
		g, err := r.current(ctx)
		if err != nil {
			return nil, err
		}
		exact := q
		if q.Start == listwatch.Newest {
			if exact, err = r.pin(ctx, g, q); err != nil {
				return nil, err
			}
		}
		if g.isOver() {
			continue
		}
		if exact.Start == listwatch.At {
			if torn := listwatch.Version(g.torn.Load()); torn != 0 && exact.Version == torn && !exact.SendsInitialEvents() {
				return nil, tornVersion(torn)
			}
			r.prober.want(g, exact.Version)
		}
		return g.log.Watch(ctx, exact)
	}
}

// Get returns the newest object at key, or nil; it waits as a List of the newest state does.
func (r *Relay) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	g, err := r.fresh(ctx)
	if err != nil {
		return nil, err
	}
	return g.log.Get(key), nil
}

// fresh returns what is as new as the newest state was when it was called.
func (r *Relay) fresh(ctx context.Context) (*generation, error) {
	for {
		g, err := r.current(ctx)
		if err != nil {
			return nil, err
		}
		q, err := r.pin(ctx, g, listwatch.Query{})
		if err != nil {
			return nil, err
		}
		if g.isOver() {
			continue
		}
		r.prober.want(g, q.Version)
		bounded, cancel := g.within(ctx)
		err = g.head.Wait(bounded, q.Version)
		cancel()
		if !g.isOver() || ctx.Err() != nil {
			return g, err
		}
	}
}

// Describe implements [listwatch.Describer]: what the upstream says of itself, with the epoch that the state is of.
func (r *Relay) Describe() listwatch.Description {
	if g, _, _ := r.latest.get(); g != nil {
		return g.description
	}
	return r.describe("")
}

func (r *Relay) describe(epoch string) listwatch.Description {
	d := listwatch.Describe(r.upstream.Source)
	d.Epoch = epoch
	if r.options.Fields != nil {
		d.Fields = r.options.Fields
	}
	return d
}

// current returns what to read from. It waits for the first state, for a while.
func (r *Relay) current(ctx context.Context) (*generation, error) {
	g, changed, closed := r.latest.get()
	switch {
	case closed:
		return nil, errClosed
	case g != nil && !g.isOver():
		return g, nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-timer.C:
			return nil, notReady(r.progress.err())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if g, changed, closed = r.latest.get(); closed {
			return nil, errClosed
		}
		if g != nil && !g.isOver() {
			return g, nil
		}
	}
}

// pin returns q, a query from the newest state of g, as one from a version that is as new. Where the upstream has turned out to be of
// another epoch, or to have an older state, it waits for that to take the place of g.
func (r *Relay) pin(ctx context.Context, g *generation, q listwatch.Query) (listwatch.Query, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	before := g.head.Version()
	newest, err := r.asker.newest(ctx)
	switch {
	case err != nil:
	case newest.generation != g:
		err = errReplaced
	case newest.version < before:
		err = wentBack(before, newest.version) // what it has acknowledged since then is not here
	}
	if listwatch.CodeOf(err) == listwatch.Expired {
		select {
		case <-g.ctx.Done():
			return q, nil
		case <-ctx.Done():
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, errClosed):
		return q, errClosed
	case errors.Is(err, context.DeadlineExceeded) && context.Cause(ctx) == errNoAnswer:
		return q, cantAsk(errNoAnswer)
	case ctx.Err() != nil && context.Cause(ctx) != errNoAnswer:
		return q, ctx.Err()
	default:
		return q, cantAsk(err)
	}
	initial := listwatch.No
	if q.SendsInitialEvents() {
		initial = listwatch.Yes
	}
	q.InitialEvents, q.Match = initial, listwatch.NotOlderThan
	if q.Start, q.Version = listwatch.At, newest.version; q.Version == 0 {
		q.Start = listwatch.Any
	}
	return q, nil
}

var errNoAnswer = errors.New("the upstream does not answer")

// Compact forgets the history: a watch from any version before the newest that is here is Expired. Watches that have read everything go on.
// It waits as a List of the newest state does.
func (r *Relay) Compact(ctx context.Context) error {
	g, err := r.fresh(ctx)
	if err != nil {
		return err
	}
	g.log.Compact()
	return nil
}
