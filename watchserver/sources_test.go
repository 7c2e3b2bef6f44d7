package watchserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

var discardLog = slog.New(slog.DiscardHandler)

// An emptyTable is a source that counts the changes of an empty table and starts at zero.
type emptyTable struct{ listwatch.Watcher }

func (emptyTable) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, nil
}

func (e emptyTable) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) { return e, nil }

func (emptyTable) Next(_ context.Context, dst []listwatch.Event) (int, error) {
	dst[0] = listwatch.NewSynced(listwatch.Description{Kind: "Row"}, listwatch.State{Version: 0}, 0)
	return 1, nil
}

func (emptyTable) Close() error { return nil }

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

// A largeEvents is a source whose watchers are not Pollers. It counts the large events that they
// return.
type largeEvents struct {
	blockedSource
	read atomic.Int32
}

func (l *largeEvents) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	return l, nil
}

func (l *largeEvents) Next(_ context.Context, dst []listwatch.Event) (int, error) {
	version := listwatch.Version(l.read.Add(1))
	data := fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%d"},"text":%q}`, version, strings.Repeat("x", 1<<20))
	dst[0] = listwatch.Event{
		Type: listwatch.Added, Version: version,
		Object: &listwatch.Object{Version: version, Data: data},
	}
	return 1, nil
}

func (l *largeEvents) Close() error { return nil }
