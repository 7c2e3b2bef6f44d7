package mutants

import (
	"context"

	"github.com/listwatch/listwatch"
)

// onEvents returns a source whose watchers show what change makes of each event, which may be nothing. seen counts the events of the
// watcher before.
func onEvents(change func(e listwatch.Event, seen int) []listwatch.Event) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &changed{s, change} }
}

// A changed source has the lists of the one below.
type changed struct {
	listwatch.Source
	change func(e listwatch.Event, seen int) []listwatch.Event
}

// Describe is that of the source below.
func (c *changed) Describe() listwatch.Description { return listwatch.Describe(c.Source) }

// Watch changes events.
func (c *changed) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := c.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &changedWatcher{Watcher: w, change: c.change}, nil
}

type changedWatcher struct {
	listwatch.Watcher
	change  func(e listwatch.Event, seen int) []listwatch.Event
	seen    int
	pending []listwatch.Event
}

// Next returns what change made of the next event.
func (w *changedWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for len(w.pending) == 0 {
		var one [1]listwatch.Event
		if _, err := w.Watcher.Next(ctx, one[:]); err != nil {
			return 0, err
		}
		w.pending = append(w.pending, w.change(one[0], w.seen)...)
		w.seen++
	}
	n := copy(dst, w.pending)
	w.pending = w.pending[n:]
	return n, nil
}

// onWatches returns a source whose watches are asked for with the query that change makes.
func onWatches(change func(q *listwatch.Query)) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &reasked{s, change} }
}

type reasked struct {
	listwatch.Source
	change func(q *listwatch.Query)
}

// Describe is that of the source below.
func (r *reasked) Describe() listwatch.Description { return listwatch.Describe(r.Source) }

// Watch asks for something else.
func (r *reasked) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	r.change(&q)
	return r.Source.Watch(ctx, q)
}
