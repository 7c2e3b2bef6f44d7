package mutants

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// initialMutants are servers and clients with one defect each, which the cases about initial
// events must detect.
var initialMutants = []mutant{
	{
		Name:   "drops-the-second-initial-event",
		Breaks: []string{"initial/stream", "initial/snapshot-exact", "initial/legacy", "initial/writes-during"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if e.Initial && seen == 1 {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "sends-stale-initial-events", Breaks: []string{"initial/fresh", "initial/not-older-than"},
		Defect: defect{Source: staleInitialState},
	},
	{
		Name: "marks-the-end-twice", Breaks: []string{"initial/one-end-marker"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Modified {
				return []listwatch.Event{e, synced(e.Version)}
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name:   "ignores-parameters-of-initial-events",
		Breaks: []string{"initial/match-required", "initial/match-alone", "initial/forbidden-on-list"},
		Defect: defect{Handler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				q.Del("sendInitialEvents")
				q.Del("resourceVersionMatch")
				r.URL.RawQuery = q.Encode()
				next.ServeHTTP(w, r)
			})
		}},
	},
	{
		Name: "always-sends-initial-events", Breaks: []string{"initial/false"},
		Defect: defect{Source: onWatches(func(q *listwatch.Query) { q.InitialEvents = listwatch.InitialEventsYes })},
	},
	{
		Name: "never-marks-the-end", Breaks: []string{"initial/empty", "initial/stream"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Synced {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "starts-at-version-zero", Breaks: []string{"initial/empty"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if e.Type == listwatch.Synced && seen == 0 {
				e = synced(0)
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "client-resumes-from-initial-events", Breaks: []string{"initial/cut-short"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source { return &hastyClient{r} }},
	},
	{
		Name: "client-forgets-refused-parameters", Breaks: []string{"initial/fallback"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source { return &forgetfulClient{r} }},
	},
}

// hastyClient is a client that resumes from the version of an initial event.
type hastyClient struct{ *client.Remote }

func (h *hastyClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := h.Remote.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &hastyWatcher{Watcher: w, from: h.Remote}, nil
}

type hastyWatcher struct {
	listwatch.Watcher
	from *client.Remote
	seen int
}

// After the second event, Next replaces the watch with a watch from the version of that event.
func (h *hastyWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := h.Watcher.Next(ctx, dst[:1])
	if h.seen++; h.seen == 2 && err == nil {
		next, err := h.from.Watch(ctx,
			listwatch.Query{Start: listwatch.StartAt, Version: dst[0].Version, Bookmarks: true})
		if err != nil {
			return 0, err
		}
		_ = h.Watcher.Close()
		h.Watcher = next
	}
	return n, err
}

// forgetfulClient is a client that forgets which parameters a server has refused: it opens
// each watch with a new Remote.
type forgetfulClient struct{ remote *client.Remote }

func (f *forgetfulClient) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return f.remote.List(ctx, q)
}

func (f *forgetfulClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	fresh := &client.Remote{URL: f.remote.URL, Network: f.remote.Network, Transports: f.remote.Transports}
	return fresh.Watch(ctx, q)
}
