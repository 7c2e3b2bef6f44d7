package resume

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

func rvOpaqueClient(e *harness.Env) {
	// A float64 cannot represent these versions.
	const version, newest = "18446744073709551614", "18446744073709551615"
	const start listwatch.Version = 7
	requested := make(chan string, 1)
	_, route := e.ServeSequence(e.SendThenEnd(harness.AddedEvent("a", version), harness.AddedEvent("b", newest)),
		harness.RecordVersion(requested))
	w := e.Follow(e.Remote(route), start)
	// More events of the newest version may follow, so this module's client resumes from the
	// version before it. In Kubernetes each event has a version of its own.
	if got := e.Await(requested, "a request that resumes"); got != version && !(e.Target.OwnClock && got == newest) {
		e.Errorf("the client resumed from version %s, want the unchanged version %s", got, version)
	}
	w.Close()

	type server struct {
		requests *harness.HandlerSequence
		resumed  chan string
	}
	servers := map[string]server{}
	for _, rv := range []string{"abc-1", "1.5", "0x10", "-3", "18446744073709551616", "007"} {
		resumed := make(chan string, 1)
		requests, route := e.ServeSequence(e.SendThenEnd(harness.AddedEvent("a", rv)), harness.RecordVersion(resumed))
		servers[rv] = server{requests, resumed}
		w := e.Follow(e.Remote(route), start)
		if !e.Target.OwnClock {
			rejectsVersion(e, w, rv)
		}
	}
	e.Pause(time.Hour, 3*time.Second)
	for rv, s := range servers {
		switch n := len(s.requests.RequestTimes()); {
		case n == 2 && e.Target.OwnClock: // Kubernetes lets clients treat a version as opaque
			// The server has sent one event. A client that resumes from the version before its
			// newest event therefore resumes from start.
			if got := <-s.resumed; got != rv && got != start.String() {
				e.Errorf("event with version %s: the client resumed from version %s, want it unchanged, or %s before it",
					rv, got, start)
			}
		case n != 1:
			e.Errorf("event with version %s: the client made %d requests, want 1", rv, n)
		}
	}
}

// rejectsVersion expects that this module's client rejects a version in an event and in a list.
func rejectsVersion(e *harness.Env, w listwatch.Watcher, rv string) {
	e.Helper()
	for range 2 {
		if got, err := e.NextOf(w); !errors.Is(err, listwatch.Unsupported) {
			e.Errorf("event with version %s: got %s, want an error of code Unsupported", rv, harness.Got(got, err))
		}
	}
	list := fmt.Sprintf(`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[]}`, rv)
	_, route := e.ServeSequence(harness.Respond(200, list, "Content-Type", "application/json"))
	if _, err := e.Remote(route).List(e.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unsupported) {
		e.Errorf("list with version %s: got %v, want an error of code Unsupported", rv, err)
	}
}

// silentEnds checks that a client does not resume from one version forever if no watch has any
// event. The version may have expired, and a proxy may have replaced the server's error with a
// clean end.
func silentEnds(e *harness.Env) {
	outcome := make(chan string, 2)
	watches := &harness.HandlerSequence{Handlers: []http.HandlerFunc{
		e.SendThenEnd(harness.AddedEvent("a", "5")), e.SendThenEnd(),
	}}
	at := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Has("watch") && q.Get("sendInitialEvents") != "true" && q.Get("resourceVersion") != "" {
			watches.ServeHTTP(w, r)
			return
		}
		select {
		case outcome <- "the client requested the state":
		default:
		}
		<-r.Context().Done()
	}))
	w := e.Follow(e.Remote(at), 4)
	if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != "a" {
		e.Fatalf("got %s, want object a", harness.Got(got, err))
	}
	go func() { // ends when the watch fails or is closed
		if _, err := e.NextOf(w); errors.Is(err, listwatch.Expired) {
			outcome <- "the watch has expired"
		}
	}()
	e.Await(outcome, "a request for the state, or the error Expired, after three watches without an event")
	w.Close()
}

// sourceWithoutEpoch hides the epoch of a source, because many other servers have no epoch.
type sourceWithoutEpoch struct{ listwatch.Source }

// Describe returns the description without the epoch.
func (s sourceWithoutEpoch) Describe() listwatch.Description {
	d := listwatch.Describe(s.Source)
	d.Epoch = ""
	return d
}

// storeReset replaces the collection that a URL serves. With epochs, the new collection has higher
// versions than the old one, so that only the epoch reveals the change. Without epochs, the new
// collection has lower versions, as after a restore from a backup.
func storeReset(e *harness.Env) {
	modes := []bool{true, false}
	if e.Target.OwnClock {
		// Without epochs a client tolerates lower versions for a minute, as from a lagging server.
		modes = modes[:1]
	}
	for _, epochs := range modes {
		old, restored := e.WithNewCollection(), e.WithNewCollection()
		writes := 10
		if !epochs {
			old.Route, restored.Route = serveWithoutEpoch(old), serveWithoutEpoch(restored)
			writes = 1
		}
		var current atomic.Pointer[harness.Route]
		current.Store(old.Route)
		proxy := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			current.Load().Internals.Handler.ServeHTTP(w, r)
		}))

		start := old.Put("a")
		w := e.Follow(e.Remote(proxy), start)
		for range 5 {
			old.Put("a")
			if _, err := e.NextOf(w); err != nil {
				e.Fatal(err)
			}
		}
		for range writes {
			restored.Put("a")
		}
		if now := restored.Newest(); (now > start+5) != epochs {
			e.Fatalf("the new collection is at version %d, the old one at %d", now, start+5)
		}
		current.Store(restored.Route)
		old.DrainWatches()
		if got, err := e.NextOf(w); !errors.Is(err, listwatch.Expired) {
			e.Errorf("epochs %v: got %s, want an error of code Expired", epochs, harness.Got(got, err))
		}
		page, err := e.Remote(proxy).List(e.Context(), listwatch.Query{})
		if !harness.IsMissing(err) && (err != nil || page.Version != restored.Newest()) {
			e.Errorf("new list: got version %d, %v; want %d", page.Version, err, restored.Newest())
		}
	}
}

// serveWithoutEpoch serves the collection of e without an epoch.
func serveWithoutEpoch(e *harness.Env) *harness.Route {
	e.Use(harness.InProcess)
	return e.ServeWatches(&watchserver.Server{
		Source: sourceWithoutEpoch{e.Internals.Source}, Transports: []transport.Server{e.Variant.Server},
	})
}
