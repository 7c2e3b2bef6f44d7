package client

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
)

func TestAllTransportsShowTheSameEvents(t *testing.T) {
	forEachTransport(t, func(t *testing.T, name string) {
		s := startServer(t, servertest.Options{})
		s.put(t, "a", 1)
		q := listwatch.Query{Bookmarks: true}
		local, err := s.things.Watch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		r := s.remote(t, name)
		remote := testkit.Watch(t, r, q)
		s.put(t, "b", 1)
		s.put(t, "a", 2)
		if _, err := s.things.Delete(t.Context(), listwatch.Key{Name: "b"}, listwatch.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		want, got := testkit.Read(t, local, 5), testkit.Read(t, remote, 5)
		for i, e := range got {
			if format(e) != format(want[i]) || string(e.Object.Data) != string(want[i].Object.Data) {
				t.Errorf("event %d: got %s %s, want %s %s", i, format(e), e.Object.Data, format(want[i]),
					want[i].Object.Data)
			}
		}
		page, err := r.List(t.Context(), listwatch.Query{})
		if err != nil || len(page.Items) != 1 || page.Version != want[4].Version ||
			string(page.Items[0].Data) != string(want[3].Object.Data) {
			t.Errorf("List returned %+v, error %v", page, err)
		}
		if d, want := r.Describe(), s.things.Describe(); d.Kind != want.Kind || d.APIVersion != want.APIVersion ||
			d.Epoch != want.Epoch {
			t.Errorf("Describe returned %+v, want %+v", d, want)
		}
	})
}

func TestWatchSurvivesCutsOnEveryTransport(t *testing.T) {
	const writes = 400
	forEachTransport(t, func(t *testing.T, name string) {
		s := startServer(t, servertest.Options{})
		o := s.put(t, "first", 0)
		r := s.remote(t, name)
		var responses int
		r.Trace = &Trace{Opened: func(string, listwatch.Version) { responses++ }}
		w := testkit.Watch(t, r, watchFrom(int(o.Version)))
		var versions []listwatch.Version
		for i := range writes {
			versions = append(versions, s.put(t, fmt.Sprint("thing-", i%7), i).Version)
			if i == writes/2 || rand.N(20) == 0 {
				s.ResetConns()
			}
			if rand.N(10) == 0 {
				time.Sleep(rand.N(time.Second))
			}
		}
		for i := 0; i < writes; {
			e := testkit.Read(t, w, 1)[0]
			if e.Type == listwatch.Bookmark {
				continue
			}
			if e.Version != versions[i] {
				t.Fatalf("event %d: got %s, want version %d", i, format(e), versions[i])
			}
			i++
		}
		w.Close()
		synctest.Wait()
		if responses < 2 {
			t.Errorf("%d responses, want at least 2: no connection was lost", responses)
		}
	})
}

// Conformance case resume/cross-transport.
func TestWatchResumesOverAnotherTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocked sync.Map // the names of blocked transports
		block := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, ok := blocked.Load(transportOf(r)); ok {
					http.Error(w, "blocked", http.StatusNotImplemented)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
		s := startServer(t, servertest.Options{Wrap: block})
		o := s.put(t, "a", 0)
		r := s.remote(t, "h2", "websocket", "chunked")
		opened := make(chan string, 10)
		r.Trace = &Trace{Opened: func(name string, _ listwatch.Version) { opened <- name }}
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: o.Version})
		for i, name := range []string{"h2", "websocket", "chunked"} {
			if got := <-opened; got != name {
				t.Fatalf("the watch uses %s, want %s", got, name)
			}
			o := s.put(t, "a", i+1)
			if e := testkit.Read(t, w, 1)[0]; e.Version != o.Version {
				t.Fatalf("got %s, want version %d", format(e), o.Version)
			}
			blocked.Store(name, true)
			s.ResetConns()
		}
		w.Close()
	})
}

// Conformance case drop/client-half-open.
func TestWatchDetectsADeadServer(t *testing.T) {
	forEachTransport(t, func(t *testing.T, name string) {
		s := startServer(t, servertest.Options{})
		o := s.put(t, "a", 0)
		w := testkit.Watch(t, s.remote(t, name), watchFrom(int(o.Version)))
		synctest.Wait()
		stalled := s.Conns()
		for _, c := range stalled {
			c.Stall(true)
		}
		start := time.Now()
		o = s.put(t, "a", 1)
		if e := testkit.Read(t, w, 1)[0]; e.Version != o.Version {
			t.Errorf("got %s, want version %d", format(e), o.Version)
		}
		if took := time.Since(start); took > DefaultIdleTimeout+5*time.Second {
			t.Errorf("the event took %v, want about %v", took, DefaultIdleTimeout)
		}
		for _, c := range stalled {
			c.Stall(false) // now the server sees that the connection was closed
		}
	})
}

func TestWatchOutlivesServerTimeouts(t *testing.T) {
	forEachTransport(t, func(t *testing.T, name string) {
		s := startServer(t, servertest.Options{})
		o := s.put(t, "a", 0)
		r := s.remote(t, name)
		responses := 0
		r.Trace = &Trace{
			Opened: func(string, listwatch.Version) { responses++ },
			Lost: func(err error, _ time.Duration) {
				if err != io.EOF {
					t.Errorf("a response ended with %v, want %v", err, io.EOF)
				}
			},
		}
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: o.Version})
		for i := range 48 {
			time.Sleep(time.Hour)
			o := s.put(t, "a", i+1)
			if e := testkit.Read(t, w, 1)[0]; e.Version != o.Version {
				t.Fatalf("got %s, want version %d", format(e), o.Version)
			}
		}
		w.Close()
		synctest.Wait()
		if responses < 48 || responses > 100 {
			t.Errorf("%d responses in 48 hours, want each to last 30 to 60 minutes", responses)
		}
	})
}

// A badGateway fails the second, third and fourth request.
type badGateway struct {
	next http.Handler

	mu       sync.Mutex
	requests int // guarded by mu
}

func (g *badGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.requests++
	n := g.requests
	g.mu.Unlock()
	switch n {
	case 2:
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprintf(w, "<html><title>502 Bad Gateway</title>%1000000d</html>", 0)
	case 3:
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	case 4:
		w.Header().Set("Retry-After", time.Now().Add(2*time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// Conformance cases error/html-502 and error/retry-after.
func TestWatchSurvivesProxyErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t,
			servertest.Options{Wrap: func(next http.Handler) http.Handler { return &badGateway{next: next} }})
		o := s.put(t, "a", 0)
		r := s.remote(t, "chunked")
		var lost []error
		var delays []time.Duration
		r.Trace = &Trace{Lost: func(err error, wait time.Duration) {
			lost, delays = append(lost, err),
				append(delays, wait)
		}}
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: o.Version})
		s.ResetConns()
		o = s.put(t, "a", 1)
		if e := testkit.Read(t, w, 1)[0]; e.Version != o.Version {
			t.Errorf("got %s, want version %d", format(e), o.Version)
		}
		w.Close()
		synctest.Wait()
		if len(lost) != 4 {
			t.Fatalf("%d requests failed, want 4: %v", len(lost), lost)
		}
		if e := lost[1].Error(); len(e) > 300 || listwatch.CodeOf(lost[1]) != listwatch.Unavailable {
			t.Errorf("got code %v and %d bytes, want Unavailable and at most 300: %.300s",
				listwatch.CodeOf(lost[1]), len(e), e)
		}
		if delays[2] < time.Minute || delays[2] > 65*time.Second || delays[3] < 118*time.Second ||
			delays[3] > 130*time.Second {
			t.Errorf("waited %v and %v, want one and two minutes", delays[2], delays[3])
		}
	})
}

func TestClosedWatchesEndAtTheServer(t *testing.T) {
	forEachTransport(t, func(t *testing.T, name string) {
		s := startServer(t, servertest.Options{})
		r := s.remote(t, name)
		for i := range 100 {
			w := testkit.Watch(t, r, listwatch.Query{})
			if i%2 == 0 {
				s.put(t, "a", i)
				testkit.Read(t, w, 1)
			}
			w.Close()
		}
		synctest.Wait()
		for range 3 {
			time.Sleep(time.Second) // gives the server time to end the watch
		}
		if n := len(s.WatchServer.Watches()); n != 0 {
			t.Errorf("%d watches are open at the server, want 0", n)
		}
	})
}

func TestRemoteIsSafeForConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, servertest.Options{})
		r := s.remote(t)
		var users sync.WaitGroup
		for i := range 8 {
			users.Go(func() {
				w, err := r.Watch(t.Context(), listwatch.Query{Bookmarks: i%2 == 0})
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Close()
				for range 20 {
					s.put(t, fmt.Sprint("thing-", i), rand.Int())
					if _, err := w.Next(t.Context(), make([]listwatch.Event, 8)); err != nil {
						t.Error(err)
					}
					if _, err := r.List(t.Context(), listwatch.Query{Limit: 2}); err != nil {
						t.Error(err)
					}
					r.Describe()
				}
			})
		}
		users.Wait()
	})
}
