package mutants

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// sinceMutants are servers and clients with one defect each, which the cases about differences must
// detect.
var sinceMutants = []mutant{
	{
		Name: "forgets-the-mark-of-a-difference", Breaks: []string{"since/difference", "since/recreated"},
		Defect: defect{Source: onEvents(withoutMark)},
	},
	{
		Name: "believes-any-state", Breaks: []string{"since/whole-if-unknown", "since/other-state"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source { return credulousSource{s} }},
	},
	{
		Name: "forgets-departures", Breaks: []string{"since/difference", "since/leaves-selector", "since/horizon"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Initial && e.Type == listwatch.Deleted {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "deletes-what-has-come-back", Breaks: []string{"since/reenters-selector", "since/recreated"},
		Defect: defect{Source: inDifferences(func(e listwatch.Event) []listwatch.Event {
			if e.Type == listwatch.Added {
				gone := e
				gone.Type = listwatch.Deleted
				return []listwatch.Event{gone, e}
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "confuses-since-with-resourceVersion", Breaks: []string{"since/earlier-version"},
		Defect: defect{Source: onWatches(func(q *listwatch.Query) {
			if q.Since.Version != 0 && q.Start == listwatch.StartAt {
				q.Since.Version = q.Version
			}
		})},
	},
	{
		Name: "names-foreign-objects", Breaks: []string{"since/no-foreign-keys"},
		Defect: defect{Source: inDifferences(func(e listwatch.Event) []listwatch.Event {
			if e.Type == listwatch.Synced {
				foreign := unwrittenEvent(e.Version)
				foreign.Type, foreign.Initial = listwatch.Deleted, true
				return []listwatch.Event{foreign, e}
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "client-takes-a-difference-for-a-state", Breaks: []string{"informer/difference-equals-list"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source { return onEvents(withoutMark)(r) }},
	},
}

// withoutMark removes the mark of a difference.
func withoutMark(e listwatch.Event, _ int) []listwatch.Event {
	if e.Type == listwatch.Synced {
		e = listwatch.NewSynced(listwatch.Description{APIVersion: "v1", Kind: "Thing"}, e.State(), 0)
	}
	return []listwatch.Event{e}
}

// credulousSource sends a difference to any reader that requests one.
type credulousSource struct{ listwatch.Source }

func (c credulousSource) Describe() listwatch.Description { return listwatch.Describe(c.Source) }

func (c credulousSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if q.Since.Version == 0 {
		return c.Source.Watch(ctx, q)
	}
	own := q
	own.Since = listwatch.State{}
	w, err := c.Source.Watch(ctx, own)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			return nil, err
		}
		if e.Type == listwatch.Synced {
			q.Since.ID, q.Since.Version = e.State().ID, min(q.Since.Version, e.Version)
			break
		}
	}
	return c.Source.Watch(ctx, q)
}

// inDifferences changes only the events of watches that request a difference.
func inDifferences(change func(listwatch.Event) []listwatch.Event) func(listwatch.Source) listwatch.Source {
	changed := onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if e.Initial || e.Type == listwatch.Synced {
			return change(e)
		}
		return []listwatch.Event{e}
	})
	return func(s listwatch.Source) listwatch.Source { return differenceSource{s, changed(s)} }
}

type differenceSource struct {
	listwatch.Source
	changed listwatch.Source
}

func (d differenceSource) Describe() listwatch.Description { return listwatch.Describe(d.Source) }

func (d differenceSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if q.Since.Version != 0 {
		return d.changed.Watch(ctx, q)
	}
	return d.Source.Watch(ctx, q)
}
