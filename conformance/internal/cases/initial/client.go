package initial

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// A requestLog records the query of each request for a watch.
type requestLog struct {
	mu      sync.Mutex
	queries []url.Values // guarded by mu
}

// record returns a handler that records the query of each request and then calls step.
func (l *requestLog) record(step http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.queries = append(l.queries, r.URL.Query())
		l.mu.Unlock()
		step(w, r)
	}
}

// failIfListed fails the case if the client requested a list. Such a client would never request the
// stream that the case waits for.
func (l *requestLog) failIfListed(e *harness.Env) {
	e.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queries {
		if !q.Has("watch") {
			e.Fatal(`the client requested a list; a client that does not request initial events must announce "lists" ` +
				`(docs/conformance-hook.md)`)
		}
	}
}

func initialCutShort(e *harness.Env) {
	e.Use(harness.StreamsState)
	part := []listwatch.Event{initialEvent("a", "7"), initialEvent("z", "2")}
	whole := []listwatch.Event{
		initialEvent("a", "7"), initialEvent("b", "5"), initialEvent("c", "6"),
		harness.InitialEventsEnd(9), harness.AddedEvent("d", "10"),
	}
	var requests requestLog
	cut := make(chan struct{})
	_, at := e.ServeSequence(
		requests.record(e.SendThenHold(cut, part...)),
		requests.record(e.SendThenEnd(whole...)),
		harness.RecordVersion(make(chan string, 1)),
	)
	ctx, cancel := context.WithTimeout(e.Context(), e.Patience())
	defer cancel()
	w := openInitial(ctx, e, at)
	if e.Target.OwnClock {
		e.Pause(0, time.Second) // a client may report nothing before the state is complete
		requests.failIfListed(e)
	} else {
		for range part {
			if _, err := e.NextOf(w); err != nil {
				e.Fatal(err)
			}
		}
	}
	close(cut)
	state := readCompleteState(ctx, e, at, w)
	if !state["b"] || !state["c"] {
		e.Errorf("got the objects %v, want at least b and c", state)
	}
	requests.mu.Lock()
	defer requests.mu.Unlock()
	for _, q := range requests.queries {
		if v := q.Get("resourceVersion"); v != "" {
			e.Errorf("requested version %q: an incomplete state has no version to resume from", v)
		}
		if q.Get("sendInitialEvents") != "true" {
			e.Errorf("requested %q, want initial events", q.Encode())
		}
	}
}

// initialEvent returns an ADDED event of an object that existed when the watch began.
func initialEvent(name, version string) listwatch.Event {
	ev := harness.AddedEvent(name, version)
	ev.Initial = true
	return ev
}

func openInitial(ctx context.Context, e *harness.Env, at *harness.Route) listwatch.Watcher {
	e.Helper()
	return watchState(ctx, e, e.Remote(at), listwatch.Query{Bookmarks: true})
}

// watchState opens a watch of r that begins with the current state.
func watchState(ctx context.Context, e *harness.Env, r listwatch.Source, q listwatch.Query) listwatch.Watcher {
	e.Helper()
	w, err := r.Watch(ctx, q)
	if harness.IsMissing(err) {
		e.Skipf("%v", err)
	}
	if err != nil {
		e.Fatal(err)
	}
	return w
}

// readCompleteState reads the initial events to their end, and returns the names of the objects. A
// client may report an error instead of retrying, but it must not resume from a part of the state.
// After an error, readCompleteState requests the state again, as a caller of the client would.
func readCompleteState(ctx context.Context, e *harness.Env, at *harness.Route, w listwatch.Watcher) map[string]bool {
	e.Helper()
	defer func() { w.Close() }()
	state := map[string]bool{}
	for {
		got, err := e.NextOf(w)
		switch {
		case err != nil:
			w.Close()
			w = openInitial(ctx, e, at)
			clear(state)
		case got.Type == listwatch.Synced:
			return state
		default:
			state[got.Object.Key.Name] = true
		}
	}
}

func initialFallback(e *harness.Env) {
	e.Use(harness.StreamsState)
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusBadRequest} {
		reason := map[int]string{422: "Invalid", 400: "BadRequest"}[code]
		var kinds []string
		var mu sync.Mutex
		at := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The watch stays open: after its end a client may resume at 6, or at 5, because more
			// events may have version 6.
			q, kind, step := r.URL.Query(), "list", e.SendThenHold(nil, harness.AddedEvent("b", "6"))
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
			w := watchState(e.Context(), e, r, listwatch.Query{})
			for _, want := range []string{"a", "b"} {
				if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
					e.Fatalf("refused with status %d: got %s, want %s", code, harness.Got(got, err), want)
				}
			}
			w.Close()
		}
		mu.Lock()
		got := strings.Join(kinds, ", ")
		mu.Unlock()
		want := "initial, list, watch 5, list, watch 5"
		if e.Target.OwnClock { // in the control hook, a watch does not know about earlier watches
			want = "initial, list, watch 5, initial, list, watch 5"
		}
		if got != want {
			e.Errorf("refused with status %d: got the requests %s; want %s", code, got, want)
		}
	}
}
