package mutants

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// conflateMutants are servers with one defect each, which the cases about conflation must detect.
// The watchers of their sources are not Pollers. The streams therefore send each event at once, and
// the server does not announce conflation.
var conflateMutants = []mutant{
	{
		Name: "announces-conflation-unasked", Breaks: []string{"conflate/header"},
		Defect: defect{Handler: onHeader(func(h http.Header) { h.Set(transport.ConflateHeader, "1s") })},
	},
	{
		Name: "conflates-added-objects", Breaks: []string{"conflate/types", "slow/coalesce-honest"},
		Defect: defect{Handler: announceConflation, Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Added && !e.Initial {
				e.Type = listwatch.Modified
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "conflates-the-last-state", Breaks: []string{"conflate/last-state", "conflate/resume-in-pass"},
		Defect: defect{Handler: announceConflation, Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Modified {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "announces-conflation-in-vain", Breaks: []string{"conflate/last-state", "slow/coalesce-honest"},
		Defect: defect{Handler: announceConflation, Source: onWatches(func(q *listwatch.Query) { q.Conflate = 0 })},
	},
	{
		Name: "sends-bookmarks-within-a-pass", Breaks: []string{"conflate/position"},
		Defect: defect{Handler: announceConflation, Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type != listwatch.Modified {
				return []listwatch.Event{e}
			}
			// Pretend that the pass ended at the next version.
			d := listwatch.Description{APIVersion: "v1", Kind: "Thing"}
			return []listwatch.Event{e, listwatch.NewBookmark(d, listwatch.State{Version: e.Version + 1})}
		})},
	},
	{
		Name: "resumes-after-the-pass", Breaks: []string{"conflate/resume-in-pass"},
		Defect: defect{Source: onWatches(func(q *listwatch.Query) {
			if q.Conflate == 0 && q.Start == listwatch.StartAt {
				q.Start, q.InitialEvents = listwatch.StartNewest, listwatch.InitialEventsNo
			}
		})},
	},
}

// announceConflation announces conflation in the response to each request for it.
func announceConflation(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if interval := r.URL.Query().Get("conflate"); interval != "" {
			w.Header().Set(transport.ConflateHeader, interval)
		}
		next.ServeHTTP(w, r)
	})
}
