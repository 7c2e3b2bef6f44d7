package mutants

import (
	"bytes"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// eventMutants are servers and clients with one defect each, which the cases about the type,
// version and object of events must detect.
var eventMutants = []mutant{
	{
		Name: "sends-deletes-as-modified",
		Breaks: []string{
			"event/create-update-delete", "event/recreate", "event/deleted-carries-delete-rv",
			"event/object-has-type-meta",
		},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
				if e.Type == listwatch.Deleted {
					e.Type = listwatch.Modified
				}
				return []listwatch.Event{e}
			}),
		},
	},
	{
		Name: "skips-the-first-event", Breaks: []string{"event/first-event-is-next", "event/rv-matches-write"},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
				if seen == 0 {
					return nil
				}
				return []listwatch.Event{e}
			}),
		},
	},
	{
		Name:   "deletes-have-the-previous-version",
		Breaks: []string{"event/deleted-carries-delete-rv", "event/create-update-delete"},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
				if e.Type == listwatch.Deleted {
					e.Object = e.Object.At(e.Version - 1)
					e.Version--
				}
				return []listwatch.Event{e}
			}),
		},
	},
	{
		Name: "sends-every-event-twice", Breaks: []string{"event/create-update-delete", "event/recreate"},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e, e} }),
		},
	},
	{
		Name: "sends-an-event-without-a-write", Breaks: []string{"event/noop-update", "event/create-update-delete"},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
				return []listwatch.Event{unwrittenEvent(e.Version), e}
			}),
		},
	},
	{
		Name: "watches-only-the-default-namespace", Breaks: []string{"event/namespace-scope"},
		Defect: defect{
			Source: onWatches(func(q *listwatch.Query) { q.Namespace = "default" }),
		},
	},
	{
		Name: "drops-kind", Breaks: []string{"event/object-has-type-meta"},
		Defect: defect{Source: onData(`"kind":"Thing",`, ``)},
	},
	{
		Name: "rewrites-numbers", Breaks: []string{"event/bytes-equal-get"},
		Defect: defect{Source: onData(`1e400`, `1E+400`)},
	},
	{
		Name:   "changes-the-bytes-each-time",
		Breaks: []string{"event/bytes-equal-across-transports", "event/no-mutation-leak"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source {
			var padding atomic.Int64
			return onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
				return []listwatch.Event{
					withData(e, append(bytes.Repeat([]byte(" "), int(padding.Add(1))), e.Object.Data...)),
				}
			})(s)
		}},
	},
	{
		Name: "hides-the-error-for-unknown-types", Breaks: []string{"event/unknown-type"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			return &withoutErrorCodes{Remote: r}
		}},
	},
}
