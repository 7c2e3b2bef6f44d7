package watchserver_test

import (
	"context"
	"log/slog"

	"github.com/listwatch/listwatch"
)

var discardLog = slog.New(slog.DiscardHandler)

// A panickingSource is a source whose watchers panic in Poll.
type panickingSource struct{ listwatch.Source }

func (p panickingSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := p.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return panickingPoller{w.(listwatch.Poller)}, nil
}

type panickingPoller struct{ listwatch.Poller }

func (panickingPoller) Poll([]listwatch.Event) (int, error) { panic("on purpose") }

// An interruptedSource is a source whose watchers call afterSecondPoll at the end of their
// second Poll.
type interruptedSource struct {
	listwatch.Source
	afterSecondPoll func()
}

func (i interruptedSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := i.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &interruptedPoller{Poller: w.(listwatch.Poller), afterSecondPoll: i.afterSecondPoll}, nil
}

type interruptedPoller struct {
	listwatch.Poller
	afterSecondPoll func()
	polls           int
}

func (p *interruptedPoller) Poll(dst []listwatch.Event) (int, error) {
	n, err := p.Poller.Poll(dst)
	if p.polls++; p.polls == 2 {
		p.afterSecondPoll()
	}
	return n, err
}
