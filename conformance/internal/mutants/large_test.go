package mutants

import (
	"bytes"
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// largeMutants are servers and clients with one defect each, which the cases about large objects
// must detect.
var largeMutants = []mutant{
	{
		Name: "client-limit-is-512-KiB", Breaks: []string{"large/1MiB", "large/3MiB"},
		Defect: defect{
			TransportClient: onRequests(func(r *transport.Request) { r.Limit = 512 << 10 }, nil),
		},
	},
	{
		Name: "truncates-long-text", Breaks: []string{"large/3MiB"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if len(e.Object.Data) > 2<<20 {
				e = withData(e, append(bytes.Clone(e.Object.Data[:2<<20]), `"}}`...))
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "loses-one-event", Breaks: []string{"large/burst"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if seen == 30 {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "copies-the-state-for-each-watch", Breaks: []string{"large/initial-50k"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source { return &copyingSource{s} }},
	},
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
