package watchserver_test

import (
	"context"
	"log/slog"

	"github.com/listwatch/listwatch"
)

var discard = slog.New(slog.DiscardHandler)

// panicking is a source whose watchers panic when they are read.
type panicking struct{ listwatch.Source }

func (p panicking) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := p.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return panickingPoller{w.(listwatch.Poller)}, nil
}

type panickingPoller struct{ listwatch.Poller }

func (panickingPoller) Poll([]listwatch.Event) (int, error) { panic("on purpose") }

// interrupted is a source whose watchers call meanwhile at the end of their second Poll.
type interrupted struct {
	listwatch.Source
	meanwhile func()
}

func (i interrupted) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := i.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &interruptedPoller{Poller: w.(listwatch.Poller), meanwhile: i.meanwhile}, nil
}

type interruptedPoller struct {
	listwatch.Poller
	meanwhile func()
	polls     int
}

func (p *interruptedPoller) Poll(dst []listwatch.Event) (int, error) {
	n, err := p.Poller.Poll(dst)
	if p.polls++; p.polls == 2 {
		p.meanwhile()
	}
	return n, err
}
