package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

func rvOpaqueClient(e *env) {
	const version, newest = "18446744073709551614", "18446744073709551615" // no float64 holds them
	asked := make(chan string)
	_, at := e.play(e.sends(added("a", version), added("b", newest)), recordVersion(asked))
	w := e.follow(e.remote(at), 7)
	// The newest may be one of several objects of one version, so the one before it is what the watch can be resumed from.
	if got := <-asked; got != version {
		e.Errorf("resumed from %s, want %s, as it came", got, version)
	}
	w.Close()

	for _, rv := range []string{"abc-1", "1.5", "0x10", "-3", "18446744073709551616", "007"} {
		script, at := e.play(e.sends(added("a", rv)))
		w := e.follow(e.remote(at), 7)
		for range 2 {
			if got, err := e.nextOf(w); !errors.Is(err, listwatch.Unsupported) {
				e.Errorf("an event of version %s: got %v, %v; want an error of code Unsupported", rv, got, err)
			}
		}
		<-time.After(time.Hour)
		if n := len(script.times()); n != 1 {
			e.Errorf("an event of version %s: %d requests within an hour, want 1", rv, n)
		}
		list := fmt.Sprintf(`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[]}`, rv)
		_, at = e.play(says(200, list, "Content-Type", "application/json"))
		if _, err := e.remote(at).List(e.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unsupported) {
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
func storeReset(e *env) {
	for _, epochs := range []bool{true, false} {
		old, restored := e.again(), e.again()
		writes := 10
		if !epochs {
			old.site, restored.site = old.serveNameless(), restored.serveNameless()
			writes = 1
		}
		var behind atomic.Pointer[site]
		behind.Store(old.site)
		front := e.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { behind.Load().inside.handler.ServeHTTP(w, r) }))

		start := old.put("a")
		w := e.follow(e.remote(front), start)
		for range 5 {
			old.put("a")
			if _, err := e.nextOf(w); err != nil {
				e.Fatal(err)
			}
		}
		for range writes {
			restored.put("a")
		}
		if now := restored.newest(); (now > start+5) != epochs {
			e.Fatalf("the second collection is at %d, the first at %d", now, start+5)
		}
		behind.Store(restored.site)
		old.drain()
		if got, err := e.nextOf(w); !errors.Is(err, listwatch.Expired) {
			e.Errorf("epochs %v: got %v, %v; want to be told to begin again", epochs, got, err)
		}
		page, err := e.remote(front).List(e.Context(), listwatch.Query{})
		if err != nil || page.Version != restored.newest() {
			e.Errorf("a new list is at %d, %v; want %d", page.Version, err, restored.newest())
		}
	}
}

// serveNameless is serve for a source without an epoch.
func (e *env) serveNameless() *site {
	e.use(InProcess)
	return e.serveBy(&watchserver.Server{Source: nameless{e.inside.source}, Transports: []transport.Server{e.way.server}})
}

// serveBy opens a site with a server of the case's own. What is left open is cut off.
func (e *env) serveBy(server *watchserver.Server) *site {
	s := e.open(server)
	s.inside, s.Drain = &inside{source: server.Source, handler: server}, server.Drain
	e.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Drain(ctx)
	})
	return s
}
