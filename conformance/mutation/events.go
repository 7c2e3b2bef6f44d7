package mutation

import (
	"bytes"
	"context"

	"github.com/listwatch/listwatch"
)

// OnEvents returns a source whose watchers show what change makes of each event, which may be nothing. seen counts the events of the
// watcher before.
func OnEvents(change func(e listwatch.Event, seen int) []listwatch.Event) func(listwatch.Source) listwatch.Source {
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
	return &ChangedWatcher{Watcher: w, Change: c.change}, nil
}

// A ChangedWatcher shows what change makes of each event.
type ChangedWatcher struct {
	listwatch.Watcher
	Change  func(e listwatch.Event, seen int) []listwatch.Event
	seen    int
	Pending []listwatch.Event
}

// Next returns what change made of the next event.
func (w *ChangedWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for len(w.Pending) == 0 {
		var one [1]listwatch.Event
		if _, err := w.Watcher.Next(ctx, one[:]); err != nil {
			return 0, err
		}
		w.Pending = append(w.Pending, w.Change(one[0], w.seen)...)
		w.seen++
	}
	n := copy(dst, w.Pending)
	w.Pending = w.Pending[n:]
	return n, nil
}

// OnWatches returns a source whose watches are asked for with the query that change makes.
func OnWatches(change func(q *listwatch.Query)) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &Reasked{s, change} }
}

// A Reasked source opens its watches with another query than it was asked for.
type Reasked struct {
	listwatch.Source
	Change func(q *listwatch.Query)
}

// Describe is that of the source below.
func (r *Reasked) Describe() listwatch.Description { return listwatch.Describe(r.Source) }

// Watch asks for something else.
func (r *Reasked) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	r.Change(&q)
	return r.Source.Watch(ctx, q)
}

// OnData replaces text in every object.
func OnData(old, text string) func(listwatch.Source) listwatch.Source {
	return OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		return []listwatch.Event{WithData(e, bytes.Replace(e.Object.Data, []byte(old), []byte(text), 1))}
	})
}

// WithData returns e with other bytes, which nobody shares.
func WithData(e listwatch.Event, data []byte) listwatch.Event {
	o := &listwatch.Object{Key: e.Object.Key, Version: e.Object.Version, Labels: e.Object.Labels, Data: data}
	return listwatch.Event{Type: e.Type, Initial: e.Initial, Object: o, Version: e.Version}
}
