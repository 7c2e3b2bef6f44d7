package event

import (
	"bytes"
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/internal/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/transport"
)

// LargeMutants are servers and clients with one defect each, which the cases about large objects
// must detect.
var LargeMutants = []mutation.Mutant{
	{Name: "client-limit-is-512-KiB", Breaks: []string{"large/1MiB", "large/3MiB"}, Defect: reference.Interceptors{
		TransportClient: mutation.OnRequests(func(r *transport.Request) { r.Limit = 512 << 10 }, nil),
	}},
	{Name: "truncates-long-text", Breaks: []string{"large/3MiB"}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if len(e.Object.Data) > 2<<20 {
			e = mutation.WithData(e, append(bytes.Clone(e.Object.Data[:2<<20]), `"}}`...))
		}
		return []listwatch.Event{e}
	})}},
	{Name: "loses-one-event", Breaks: []string{"large/burst"}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, seen int) []listwatch.Event {
		if seen == 30 {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{Name: "copies-the-state-for-each-watch", Breaks: []string{"large/initial-50k"}, Defect: reference.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &copyingSource{s} }}},
}

// copyingSource is a source whose watches each hold a copy of the state.
type copyingSource struct{ listwatch.Source }

func (c *copyingSource) Describe() listwatch.Description { return listwatch.Describe(c.Source) }

func (c *copyingSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	page, err := c.List(ctx, listwatch.Query{})
	if err != nil {
		return nil, err
	}
	w, err := c.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	full := &copyingWatcher{Watcher: w}
	for _, o := range page.Items {
		full.state = append(full.state, bytes.Clone(o.Data))
	}
	return full, nil
}

type copyingWatcher struct {
	listwatch.Watcher
	state [][]byte
}
