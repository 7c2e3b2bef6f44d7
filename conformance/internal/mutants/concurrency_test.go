package mutants

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// concurrencyMutants are servers and clients with one defect each, which the cases about
// concurrent watches and writes must detect.
var concurrencyMutants = []mutant{
	{
		Name: "one-watcher-misses-an-event", Breaks: []string{"conc/1000-watchers"},
		Defect: defect{Source: onEachWatcher(func(n int64) eventChange {
			return func(e listwatch.Event, seen int) []listwatch.Event {
				if n == 150 && seen == 30 {
					return nil
				}
				return []listwatch.Event{e}
			}
		})},
	},
	{
		Name: "starts-watches-at-the-newest-version", Breaks: []string{"conc/subscribe-race"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source {
			return &changedQueries{Source: s, Change: func(q *listwatch.Query) {
				if page, err := s.List(context.Background(), listwatch.Query{Limit: 1}); err == nil &&
					q.Start == listwatch.StartAt {
					q.Version = page.Version
				}
			}}
		}},
	},
	{
		Name: "sends-to-one-watch-at-a-time", Breaks: []string{"conc/h2-one-conn", "conc/head-of-line"},
		Defect: defect{Transport: func(s transport.Server) transport.Server {
			turn := make(chan struct{}, 1)
			return onSend(func(next transport.Sender, frames [][]byte) error {
				turn <- struct{}{}
				defer func() { <-turn }()
				return next.Send(frames)
			})(s)
		}},
	},
	{
		Name: "one-closed-watch-stops-all-others", Breaks: []string{"conc/close-during-send"},
		Defect: defect{Transport: func(s transport.Server) transport.Server {
			var broken atomic.Bool
			return onClose(func(next transport.Sender, end transport.End) error {
				broken.Store(true)
				return next.Close(end)
			})(onSend(func(next transport.Sender, frames [][]byte) error {
				if broken.Load() {
					return errors.New("broken")
				}
				return next.Send(frames)
			})(s))
		}},
	},
	{
		Name: "client-fails-the-second-close", Breaks: []string{"conc/stop-idempotent"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source { return &closeOnceClient{r} }},
	},
}

// An eventChange returns the events that a watcher receives in place of e; see onEvents.
type eventChange = func(e listwatch.Event, seen int) []listwatch.Event

// onEachWatcher is like onEvents, but calls change for each watcher to get a separate eventChange.
// n is the number of the watcher, counted from 1.
func onEachWatcher(change func(n int64) eventChange) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &perWatcherSource{Source: s, change: change} }
}

type perWatcherSource struct {
	listwatch.Source
	change func(n int64) eventChange
	n      atomic.Int64
}

func (p *perWatcherSource) Describe() listwatch.Description { return listwatch.Describe(p.Source) }

func (p *perWatcherSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := p.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &changedWatcher{Watcher: w, Change: p.change(p.n.Add(1))}, nil
}

// closeOnceClient is a client whose watches return an error from the second Close.
type closeOnceClient struct{ *client.Remote }

func (c *closeOnceClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := c.Remote.Watch(ctx, q)
	return &closeOnceWatcher{Watcher: w}, err
}

type closeOnceWatcher struct {
	listwatch.Watcher
	once sync.Once
}

func (c *closeOnceWatcher) Close() error {
	err := errors.New("already closed")
	c.once.Do(func() { err = c.Watcher.Close() })
	return err
}

// orderMutants are servers with one defect each, which the cases about the order of events must
// detect.
var orderMutants = []mutant{
	{
		Name: "every-other-watcher-has-a-different-order", Breaks: []string{"order/same-for-all"},
		Defect: defect{Source: onEachWatcher(func(n int64) eventChange {
			if n%2 == 0 {
				return swapEvents()
			}
			return func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e} }
		})},
	},
	{
		Name: "swaps-events", Breaks: []string{"order/per-key-and-global"},
		Defect: defect{Source: onEachWatcher(func(int64) eventChange { return swapEvents() })},
	},
}

// swapEvents returns a change that swaps every tenth event with the event after it.
func swapEvents() eventChange {
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
