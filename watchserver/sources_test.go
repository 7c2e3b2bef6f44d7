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
