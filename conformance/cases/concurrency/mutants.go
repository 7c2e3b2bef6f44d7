package concurrency

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/transport"
)

// Mutants break the cases of many at once.
var Mutants = []mutation.Mutant{
	{Name: "one-watcher-in-many-misses-an-event", Breaks: []string{"conc/1000-watchers"}, Defect: reference.Interceptors{Source: onWatchers(func(n int64) eventChange {
		return func(e listwatch.Event, seen int) []listwatch.Event {
			if n == 150 && seen == 50 {
				return nil
			}
			return []listwatch.Event{e}
		}
	})}},
	{Name: "begins-when-it-is-ready", Breaks: []string{"conc/subscribe-race"}, Defect: reference.Interceptors{Source: func(s listwatch.Source) listwatch.Source {
		return &mutation.Reasked{Source: s, Change: func(q *listwatch.Query) {
			if page, err := s.List(context.Background(), listwatch.Query{Limit: 1}); err == nil && q.Start == listwatch.At {
				q.Version = page.Version
			}
		}}
	}}},
	{Name: "sends-one-at-a-time", Breaks: []string{"conc/h2-one-conn", "conc/head-of-line"}, Defect: reference.Interceptors{Transport: func(s transport.Server) transport.Server {
		turn := make(chan struct{}, 1)
		return mutation.OnSend(func(next transport.Sender, frames [][]byte) error {
			turn <- struct{}{}
			defer func() { <-turn }()
			return next.Send(frames)
		})(s)
	}}},
	{Name: "one-leaves-and-nobody-is-sent-anything", Breaks: []string{"conc/close-during-send"}, Defect: reference.Interceptors{Transport: func(s transport.Server) transport.Server {
		var broken atomic.Bool
		return mutation.OnClose(func(next transport.Sender, end transport.End) error {
			broken.Store(true)
			return next.Close(end)
		})(mutation.OnSend(func(next transport.Sender, frames [][]byte) error {
			if broken.Load() {
				return errors.New("broken")
			}
			return next.Send(frames)
		})(s))
	}}},
	{Name: "client-can-be-closed-once", Breaks: []string{"conc/stop-idempotent"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &touchy{r} }}},
}

// An eventChange makes of an event what a watcher is to see, as in onEvents.
type eventChange = func(e listwatch.Event, seen int) []listwatch.Event

// onWatchers is onEvents with another change for each watcher; n counts them.
func onWatchers(change func(n int64) eventChange) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &counted{Source: s, change: change} }
}

type counted struct {
	listwatch.Source
	change func(n int64) eventChange
	n      atomic.Int64
}

// Describe is that of the source below.
func (c *counted) Describe() listwatch.Description { return listwatch.Describe(c.Source) }

// Watch changes events.
func (c *counted) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := c.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &mutation.ChangedWatcher{Watcher: w, Change: c.change(c.n.Add(1))}, nil
}

// touchy is a client whose watches can be closed once.
type touchy struct{ *client.Remote }

// Watch returns such a watch.
func (t *touchy) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := t.Remote.Watch(ctx, q)
	return &touchyWatcher{Watcher: w}, err
}

type touchyWatcher struct {
	listwatch.Watcher
	once sync.Once
}

// Close closes it the first time.
func (w *touchyWatcher) Close() error {
	err := errors.New("it is closed")
	w.once.Do(func() { err = w.Watcher.Close() })
	return err
}

// OrderMutants break the cases of order.
var OrderMutants = []mutation.Mutant{
	{Name: "every-other-watcher-has-another-order", Breaks: []string{"order/same-for-all"}, Defect: reference.Interceptors{Source: onWatchers(func(n int64) eventChange {
		if n%2 == 0 {
			return swapping()
		}
		return func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e} }
	})}},
	{Name: "events-overtake-others", Breaks: []string{"order/per-key-and-global"}, Defect: reference.Interceptors{Source: onWatchers(func(int64) eventChange { return swapping() })}},
}

// swapping returns a change that lets an event in ten come behind the next one.
func swapping() eventChange {
	var held []listwatch.Event
	return func(e listwatch.Event, seen int) []listwatch.Event {
		if seen%10 == 4 {
			held = []listwatch.Event{e}
			return nil
		}
		events := append([]listwatch.Event{e}, held...)
		held = nil
		return events
	}
}
