package reflector

import (
	"context"
	"fmt"
	"iter"

	"github.com/listwatch/listwatch"
)

// Pages lists the given source and returns all pages, beginning with the page that q requests. It
// stops after an error. It returns an error of code Corrupt if the source sends the same page
// again.
func Pages(ctx context.Context, source listwatch.Source, q listwatch.Query) iter.Seq2[listwatch.Page, error] {
	return func(yield func(listwatch.Page, error) bool) {
		var first listwatch.Key
		for {
			page, err := source.List(ctx, q)
			if err == nil && q.Continue != "" && page.Continue == q.Continue && firstKey(page) == first {
				err = &listwatch.Error{
					Code: listwatch.Corrupt, Op: "list",
					Message: fmt.Sprintf("the continue token %q leads to the same page again", q.Continue),
				}
			}
			if !yield(page, err) || err != nil || page.Continue == "" {
				return
			}
			first = firstKey(page)
			q.Start, q.Version, q.Match = listwatch.StartNewest, 0, listwatch.MatchNotOlderThan
			q.Continue = page.Continue
		}
	}
}

func firstKey(page listwatch.Page) (first listwatch.Key) {
	if len(page.Items) > 0 {
		first = page.Items[0].Key
	}
	return first
}

// InitialEvents returns the initial events of a watch for these objects.
func InitialEvents(objects []*listwatch.Object) []listwatch.Event {
	events := make([]listwatch.Event, len(objects))
	for i, o := range objects {
		events[i] = listwatch.Event{Type: listwatch.Added, Initial: true, Object: o, Version: o.Version}
	}
	return events
}
