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
	const version, newest = "18446744073709551614", "18446744073709551615" // no float64 holds them
	asked := make(chan string)
	_, at := e.ServeInTurn(e.SendThenEnd(harness.AddedEvent("a", version), harness.AddedEvent("b", newest)), harness.RecordVersion(asked))
	w := e.Follow(e.Remote(at), 7)
	// The newest may be one of several objects of one version, so the one before it is what the watch can be resumed from.
	if got := <-asked; got != version {
		e.Errorf("resumed from %s, want %s, as it came", got, version)
	}
	w.Close()

	for _, rv := range []string{"abc-1", "1.5", "0x10", "-3", "18446744073709551616", "007"} {
		script, at := e.ServeInTurn(e.SendThenEnd(harness.AddedEvent("a", rv)))
		w := e.Follow(e.Remote(at), 7)
		for range 2 {
			if got, err := e.NextOf(w); !errors.Is(err, listwatch.Unsupported) {
				e.Errorf("an event of version %s: got %v, %v; want an error of code Unsupported", rv, got, err)
			}
		}
		<-time.After(time.Hour)
		if n := len(script.RequestTimes()); n != 1 {
			e.Errorf("an event of version %s: %d requests within an hour, want 1", rv, n)
		}
		list := fmt.Sprintf(`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[]}`, rv)
		_, at = e.ServeInTurn(harness.Respond(200, list, "Content-Type", "application/json"))
		if _, err := e.Remote(at).List(e.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unsupported) {
			e.Errorf("a list of version %s: got %v, want an error of code Unsupported", rv, err)
		}
	}
}

// A nameless source does not tell its epoch, as servers of other makes.
type nameless struct{ listwatch.Source }

// Describe hides the epoch.
func (n nameless) Describe() listwatch.Description {
	d := listwatch.Describe(n.Source)
	d.Epoch = ""
	return d
}

// storeReset puts another collection behind the URL. Where its epoch tells, its versions are even ahead of those of the first; where
// there are no epochs they are behind, as after a backup was restored.
func storeReset(e *harness.Env) {
	for _, epochs := range []bool{true, false} {
		old, restored := e.WithNewCollection(), e.WithNewCollection()
		writes := 10
		if !epochs {
			old.Route, restored.Route = serveNameless(old), serveNameless(restored)
			writes = 1
		}
		var behind atomic.Pointer[harness.Route]
		behind.Store(old.Route)
		front := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { behind.Load().Internals.Handler.ServeHTTP(w, r) }))

		start := old.Put("a")
		w := e.Follow(e.Remote(front), start)
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
			e.Fatalf("the second collection is at %d, the first at %d", now, start+5)
		}
		behind.Store(restored.Route)
		old.DrainWatches()
		if got, err := e.NextOf(w); !errors.Is(err, listwatch.Expired) {
			e.Errorf("epochs %v: got %v, %v; want to be told to begin again", epochs, got, err)
		}
		page, err := e.Remote(front).List(e.Context(), listwatch.Query{})
		if err != nil || page.Version != restored.Newest() {
			e.Errorf("a new list is at %d, %v; want %d", page.Version, err, restored.Newest())
		}
	}
}

// serveNameless is serve for a source without an epoch.
func serveNameless(e *harness.Env) *harness.Route {
	e.Use(harness.InProcess)
	return e.ServeWatches(&watchserver.Server{Source: nameless{e.Internals.Source}, Transports: []transport.Server{e.Variant.Server}})
}
