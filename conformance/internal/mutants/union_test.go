package mutants

import (
	"context"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// unionMutants are servers with one defect each, which the cases about unions must detect.
var unionMutants = []mutant{
	{
		Name: "union-swaps-collections", Breaks: []string{"union/order"},
		Defect: defect{Union: func(s listwatch.Source) listwatch.Source { return swappedPairs{s} }},
	},
	{
		Name: "union-loses-an-event", Breaks: []string{"union/order", "union/resume", "union/last-event-id"},
		Defect: defect{Union: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if !e.Initial && strings.HasSuffix(string(e.Object.Key.Name), "second-3") {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "union-state-of-a-later-version", Breaks: []string{"union/snapshot"},
		Defect: defect{Union: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Synced {
				e = synced(e.Version - 1)
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "union-ignores-last-event-id", Breaks: []string{"union/last-event-id"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.URL.Path == "/watch" {
				r.Header.Del("Last-Event-ID")
			}
		})},
	},
	{
		Name: "union-hides-lost-history", Breaks: []string{"union/expired"},
		Defect: defect{Union: func(s listwatch.Source) listwatch.Source { return &withoutErrors{s} }},
	},
	{
		Name: "union-checks-no-rights", Breaks: []string{"union/forbidden"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.URL.Path == "/watch" {
				r.Header.Set("Authorization", "Bearer "+harness.Allowed)
			}
		})},
	},
	{
		Name: "union-difference-without-departures", Breaks: []string{"union/difference"},
		Defect: defect{Union: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Initial && e.Type == listwatch.Deleted {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "union-bookmarks-within-a-pass", Breaks: []string{"union/conflated"},
		Defect: defect{Handler: announceConflation, Union: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type != listwatch.Modified {
				return []listwatch.Event{e}
			}
			// As if the pass ended with the next write.
			d := listwatch.Description{APIVersion: "v1", Kind: "List"}
			return []listwatch.Event{e, listwatch.NewBookmark(d, listwatch.State{Version: e.Version + 1})}
		})},
	},
	{
		Name: "union-bookmarks-of-one-kind", Breaks: []string{"union/bookmark"},
		Defect: defect{Union: func(s listwatch.Source) listwatch.Source { return namedThing{s} }},
	},
}

// namedThing describes a union as one of its collections.
type namedThing struct{ listwatch.Source }

func (namedThing) Describe() listwatch.Description {
	return listwatch.Description{APIVersion: "conformance.example.com/v1", Kind: "Thing"}
}

// swappedPairs is a source whose watches swap the events of each pair.
type swappedPairs struct{ listwatch.Source }

func (s swappedPairs) Describe() listwatch.Description { return listwatch.Describe(s.Source) }

func (s swappedPairs) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	var held []listwatch.Event
	return onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if len(held) == 0 {
			held = []listwatch.Event{e}
			return nil
		}
		pair := []listwatch.Event{e, held[0]}
		held = nil
		return pair
	})(s.Source).Watch(ctx, q)
}
