package event

import (
	"bytes"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
)

// Mutants break the cases of what events mean.
var Mutants = []mutation.Mutant{
	{Name: "deletes-are-modified", Breaks: []string{"event/create-update-delete", "event/recreate", "event/deleted-carries-delete-rv", "event/object-has-type-meta"}, Defect: reference.Interceptors{
		Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Deleted {
				e.Type = listwatch.Modified
			}
			return []listwatch.Event{e}
		}),
	}},
	{Name: "starts-one-late", Breaks: []string{"event/first-event-is-next", "event/rv-matches-write"}, Defect: reference.Interceptors{
		Source: mutation.OnEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if seen == 0 {
				return nil
			}
			return []listwatch.Event{e}
		}),
	}},
	{Name: "deletes-have-the-version-before", Breaks: []string{"event/deleted-carries-delete-rv", "event/create-update-delete"}, Defect: reference.Interceptors{
		Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Deleted {
				e.Object = e.Object.At(e.Version - 1)
				e.Version--
			}
			return []listwatch.Event{e}
		}),
	}},
	{Name: "tells-everything-twice", Breaks: []string{"event/create-update-delete", "event/recreate"}, Defect: reference.Interceptors{
		Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e, e} }),
	}},
	{Name: "sees-a-ghost", Breaks: []string{"event/noop-update", "event/create-update-delete"}, Defect: reference.Interceptors{
		Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			return []listwatch.Event{mutation.Ghost(e.Version), e}
		}),
	}},
	{Name: "forgets-the-namespace", Breaks: []string{"event/namespace-scope"}, Defect: reference.Interceptors{
		Source: mutation.OnWatches(func(q *listwatch.Query) { q.Namespace = "default" }),
	}},
	{Name: "drops-kind", Breaks: []string{"event/object-has-type-meta"}, Defect: reference.Interceptors{Source: mutation.OnData(`"kind":"Thing",`, ``)}},
	{Name: "spells-numbers-anew", Breaks: []string{"event/bytes-equal-get"}, Defect: reference.Interceptors{Source: mutation.OnData(`1e400`, `1E+400`)}},
	{Name: "another-spelling-each-time", Breaks: []string{"event/bytes-equal-across-transports", "event/no-mutation-leak"}, Defect: reference.Interceptors{Source: func(s listwatch.Source) listwatch.Source {
		var padding atomic.Int64
		return mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			return []listwatch.Event{mutation.WithData(e, append(bytes.Repeat([]byte(" "), int(padding.Add(1))), e.Object.Data...))}
		})(s)
	}}},
	{Name: "passes-over-unknown-types", Breaks: []string{"event/unknown-type"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		return &mutation.Deaf{Remote: r}
	}}},
}
