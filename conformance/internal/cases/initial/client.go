package initial

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

func initialCutShort(e *harness.Env) {
	markInitial := func(events ...listwatch.Event) []listwatch.Event {
		for i := range events {
			events[i].Initial = true
		}
		return events
	}
	var mu sync.Mutex
	var requests []string
	watch := func(step http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			requests = append(requests, r.URL.Query().Get("resourceVersion")+" "+r.URL.Query().Get("sendInitialEvents"))
			mu.Unlock()
			step(w, r)
		}
	}
	complete := append(markInitial(harness.AddedEvent("a", "7"), harness.AddedEvent("b", "5"),
		harness.AddedEvent("c", "6")), harness.InitialEventsEnd(9), harness.AddedEvent("d", "10"))
	cut := make(chan struct{})
	_, at := e.ServeSequence(watch(e.SendThenHold(cut, markInitial(harness.AddedEvent("a", "7"), harness.AddedEvent("z",
		"2"))...)), watch(e.SendThenEnd(complete...)), harness.RecordVersion(make(chan string, 1)))
	ctx, cancel := context.WithTimeout(e.Context(), e.Patience())
	defer cancel()
	w, err := e.Remote(at).Watch(ctx, listwatch.Query{Bookmarks: true})
	if err != nil {
		e.Fatal(err)
	}
	defer func() { w.Close() }()
	for range 2 {
		if _, err := e.NextOf(w); err != nil {
			e.Fatal(err)
		}
	}
	close(cut)
	state := map[string]bool{}
	for {
		got, err := e.NextOf(w)
		if err != nil {
			// A client may report an error instead of retrying, but it must not resume from
			// a part of the state. After an error, request the state again, as a caller of
			// the client would.
			next, err := e.Remote(at).Watch(ctx, listwatch.Query{Bookmarks: true})
			if err != nil {
				e.Fatal(err)
			}
			w.Close()
			w = next
			clear(state)
			continue
		}
		if got.Type == listwatch.Synced {
			break
		}
		state[got.Object.Key.Name] = true
	}
	if !state["b"] || !state["c"] {
		e.Errorf("got the objects %v, want at least b and c", state)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, query := range requests {
		if query != " true" {
			e.Errorf("requested resourceVersion and sendInitialEvents %q, want \" true\": an incomplete state has no "+
				"version to resume from", query)
		}
	}
}

func initialFallback(e *harness.Env) {
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusBadRequest} {
		reason := map[int]string{422: "Invalid", 400: "BadRequest"}[code]
		var kinds []string
		var mu sync.Mutex
		at := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q, kind, step := r.URL.Query(), "list", e.SendThenEnd(harness.AddedEvent("b", "6"))
			switch {
			case q.Has("sendInitialEvents"):
				kind, step = "initial", harness.Respond(code, harness.StatusJSON(code, reason, nil),
					"Content-Type", "application/json")
			case q.Get("watch") == "":
				step = harness.Respond(200,
					`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`+
						string(harness.AddedEvent("a", "5").Object.Data)+`]}`,
					"Content-Type", "application/json")
			default:
				kind = "watch " + q.Get("resourceVersion")
			}
			mu.Lock()
			kinds = append(kinds, kind)
			mu.Unlock()
			step(w, r)
		}))
		r := e.Remote(at)
		for range 2 {
			w, err := r.Watch(e.Context(), listwatch.Query{})
			if err != nil {
				e.Fatal(err)
			}
			for _, want := range []string{"a", "b"} {
				if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
					e.Fatalf("refused with status %d: got %v, %v; want %s", code, got, err, want)
				}
			}
			w.Close()
		}
		mu.Lock()
		got := strings.Join(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == "watch 6" }), ", ")
		mu.Unlock()
		if want := "initial, list, watch 5, list, watch 5"; got != want {
			e.Errorf("refused with status %d: got the requests %s; want %s", code, got, want)
		}
	}
}
