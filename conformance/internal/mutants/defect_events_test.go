package mutants

import (
	"bytes"
	"context"

	"github.com/listwatch/listwatch"
)

// onEvents returns a function that wraps a source. The watchers of the wrapper replace each event
// with the result of change, which may be empty. seen is the number of earlier events of the same
// watcher.
func onEvents(change func(e listwatch.Event, seen int) []listwatch.Event) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &eventChanger{s, change} }
}

// eventChanger wraps a source and replaces the events of its watches.
type eventChanger struct {
	listwatch.Source
	change func(e listwatch.Event, seen int) []listwatch.Event
}

// Describe returns the description of the wrapped source.
func (e *eventChanger) Describe() listwatch.Description { return listwatch.Describe(e.Source) }

// Watch opens a watch whose events are replaced.
func (e *eventChanger) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := e.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &changedWatcher{Watcher: w, Change: e.change}, nil
}

// A changedWatcher returns the events in Pending first, and then replaces each event with the
// result of Change.
type changedWatcher struct {
	listwatch.Watcher
	Change  func(e listwatch.Event, seen int) []listwatch.Event
	seen    int
	Pending []listwatch.Event
}

// Next returns pending events, or the replacement of the next event.
func (c *changedWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for len(c.Pending) == 0 {
		var one [1]listwatch.Event
		if _, err := c.Watcher.Next(ctx, one[:]); err != nil {
			return 0, err
		}
		c.Pending = append(c.Pending, c.Change(one[0], c.seen)...)
		c.seen++
	}
	n := copy(dst, c.Pending)
	c.Pending = c.Pending[n:]
	return n, nil
}

// onWatches returns a function that wraps a source. The wrapper alters the query of each
// watch.
func onWatches(change func(q *listwatch.Query)) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &changedQueries{s, change} }
}

// A changedQueries source alters the queries of its watches.
type changedQueries struct {
	listwatch.Source
	Change func(q *listwatch.Query)
}

// Describe returns the description of the wrapped source.
func (c *changedQueries) Describe() listwatch.Description { return listwatch.Describe(c.Source) }

// Watch opens a watch with the altered query.
func (c *changedQueries) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	c.Change(&q)
	return c.Source.Watch(ctx, q)
}

// onData returns a function that wraps a source. The wrapper replaces the first occurrence of old
// in the object of each event with text.
func onData(old, text string) func(listwatch.Source) listwatch.Source {
	return onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		return []listwatch.Event{withData(e, bytes.Replace(e.Object.Data, []byte(old), []byte(text), 1))}
	})
}

// withData returns a copy of e with other data. The original object, which other watchers may
// share, does not change.
func withData(e listwatch.Event, data []byte) listwatch.Event {
	o := &listwatch.Object{Key: e.Object.Key, Version: e.Object.Version, Labels: e.Object.Labels, Data: data}
	return listwatch.Event{Type: e.Type, Initial: e.Initial, Object: o, Version: e.Version}
}
