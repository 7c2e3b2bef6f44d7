package mutants

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// fieldsMutants are servers with one defect each, which the cases about projections must detect.
var fieldsMutants = []mutant{
	{
		Name:   "sends-hidden-changes",
		Breaks: []string{"fields/silent", "fields/generation", "fields/bookmark-moves", "fields/resume"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source { return unfilteredSource{s, ""} }},
	},
	{
		Name: "sends-hidden-generations", Breaks: []string{"fields/generation"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source { return unfilteredSource{s, "-"} }},
	},
	{
		Name: "lists-whole-objects", Breaks: []string{"fields/list"},
		Defect: defect{Handler: listsWholeObjects},
	},
	{
		Name: "hides-the-kind", Breaks: []string{"fields/identity"},
		Defect: defect{Source: onData(`"kind":"Thing",`, "")},
	},
	{
		Name: "excludes-nothing", Breaks: []string{"fields/longest-path", "fields/arrays"},
		Defect: defect{Handler: onFields(func(paths string) string {
			if strings.HasPrefix(paths, "-spec") {
				return "spec"
			}
			return paths
		})},
	},
	{
		Name: "shows-arrays-whole", Breaks: []string{"fields/arrays"},
		Defect: defect{Handler: onFields(
			func(paths string) string { return strings.Replace(paths, "list.k", "list", 1) })},
	},
	{
		Name: "ignores-wrong-paths", Breaks: []string{"fields/errors"},
		Defect: defect{Handler: onFields(
			func(paths string) string { return strings.Replace(paths, "spec..a", "spec.a", 1) })},
	},
}

// onFields changes the parameter fields.
func onFields(change func(paths string) string) func(http.Handler) http.Handler {
	return onQuery(func(q url.Values) {
		if q.Has("fields") {
			q.Set("fields", change(q.Get("fields")))
		}
	})
}

// unfilteredSource is a source whose watches reduce the objects but send every change. This affects
// only projections whose canonical text begins with prefix.
type unfilteredSource struct {
	listwatch.Source
	prefix string
}

func (u unfilteredSource) Describe() listwatch.Description { return listwatch.Describe(u.Source) }

func (u unfilteredSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	projection := q.Projection
	if !strings.HasPrefix(projection.String(), u.prefix) {
		return u.Source.Watch(ctx, q)
	}
	q.Projection = listwatch.Projection{}
	reduce := onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
			e.Object = projection.Reduce(e.Object)
		}
		return []listwatch.Event{e}
	})
	return reduce(u.Source).Watch(ctx, q)
}

// listsWholeObjects makes lists show the whole spec, with the header of the reduced objects.
func listsWholeObjects(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		paths := q.Get("fields")
		if q.Has("watch") || !strings.HasPrefix(paths, "spec.") {
			next.ServeHTTP(w, r)
			return
		}
		q.Set("fields", "spec")
		r.URL.RawQuery = q.Encode()
		onHeader(func(h http.Header) { h.Set(transport.FieldsHeader, paths) })(next).ServeHTTP(w, r)
	})
}
