package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// A site is a watchserver over a store, on a network in memory whose connections a test can cut.
type site struct {
	things *store.Collection
	server *watchserver.Server
	http   *http.Server

	mu       sync.Mutex
	listener *memnet.Listener // guarded by mu; another one after a restart
	conns    []*memnet.Conn   // guarded by mu; the clients' ends
}

// openSite starts a site; wrap may answer instead of the server.
func openSite(t testing.TB, wrap func(http.Handler) http.Handler) *site {
	t.Helper()
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{things: things, server: &watchserver.Server{Source: things}, listener: memnet.Listen()}
	var handler http.Handler = s.server
	if wrap != nil {
		handler = wrap(handler)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{Handler: handler, Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan error)
	go func() { done <- s.http.Serve(s.listener) }()
	t.Cleanup(func() {
		s.server.Drain(context.Background())
		s.http.Close()
		<-done
	})
	return s
}

func (s *site) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := s.listener.DialConn(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	return c, nil
}

// each does f to the connections made so far.
func (s *site) each(f func(*memnet.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		f(c)
	}
	s.conns = nil
}

// remote returns a Remote of s over the named transports.
func (s *site) remote(t testing.TB, names ...string) *Remote {
	r := &Remote{URL: "http://" + s.listener.Addr().String() + "/things", Network: transport.Network{Dial: s.dial}}
	for _, name := range names {
		r.Transports = append(r.Transports, map[string]transport.Client{
			"chunked": &chunked.Client{Network: r.Network}, "h2": &h2.Client{Network: r.Network}, "websocket": &websocket.Client{Network: r.Network},
		}[name])
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// put creates or replaces a thing.
func (s *site) put(t testing.TB, name string, n int) *listwatch.Object {
	t.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q},"n":%d}`, name, n)
	o, err := s.things.Create(context.Background(), data)
	if errors.Is(err, listwatch.AlreadyExists) {
		o, err = s.things.Replace(context.Background(), listwatch.Key{Name: name}, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// next returns the next n events.
func next(t testing.TB, w listwatch.Watcher, n int) []listwatch.Event {
	t.Helper()
	events := make([]listwatch.Event, n)
	for got := 0; got < n; {
		k, err := w.Next(t.Context(), events[got:])
		if err != nil {
			t.Fatalf("after %d of %d events: %v", got, n, err)
		}
		got += k
	}
	return events
}

var transportNames = []string{"chunked", "h2", "websocket"}

// onEach runs test for each transport, in a bubble.
func onEach(t *testing.T, test func(t *testing.T, name string)) {
	for _, name := range transportNames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, name) })
		})
	}
}

func TestATransportIsInvisible(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := openSite(t, nil)
		s.put(t, "a", 1)
		q := listwatch.Query{Bookmarks: true}
		here, err := s.things.Watch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		r := s.remote(t, name)
		there := watch(t, r, q)
		s.put(t, "b", 1)
		s.put(t, "a", 2)
		if _, err := s.things.Delete(t.Context(), listwatch.Key{Name: "b"}, store.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		want, got := next(t, here, 5), next(t, there, 5)
		for i, e := range got {
			if spell(e) != spell(want[i]) || string(e.Object.Data) != string(want[i].Object.Data) {
				t.Errorf("event %d: got %s %s, want %s %s", i, spell(e), e.Object.Data, spell(want[i]), want[i].Object.Data)
			}
		}
		page, err := r.List(t.Context(), listwatch.Query{})
		if err != nil || len(page.Items) != 1 || page.Version != want[4].Version || string(page.Items[0].Data) != string(want[3].Object.Data) {
			t.Errorf("listed %+v, error %v", page, err)
		}
		if d, want := r.Describe(), s.things.Describe(); d.Kind != want.Kind || d.APIVersion != want.APIVersion || d.Epoch != want.Epoch {
			t.Errorf("described as %+v, want %+v", d, want)
		}
	})
}

func TestWatchSurvivesCutsOnEveryTransport(t *testing.T) {
	const writes = 400
	onEach(t, func(t *testing.T, name string) {
		s := openSite(t, nil)
		o := s.put(t, "first", 0)
		r := s.remote(t, name)
		var streams int
		r.Trace = &Trace{Opened: func(string, listwatch.Version) { streams++ }}
		w := watch(t, r, from(int(o.Version)))
		var versions []listwatch.Version
		for i := range writes {
			versions = append(versions, s.put(t, fmt.Sprint("thing-", i%7), i).Version)
			if rand.N(20) == 0 {
				s.each((*memnet.Conn).Reset)
			}
			if rand.N(10) == 0 {
				time.Sleep(rand.N(time.Second))
			}
		}
		i := 0
		for i < writes {
			for _, e := range next(t, w, 1) {
				if e.Type == listwatch.Bookmark {
					continue
				}
				if e.Version != versions[i] {
					t.Fatalf("event %d: got %s, want version %d", i, spell(e), versions[i])
				}
				i++
			}
		}
		w.Close()
		synctest.Wait()
		if streams < 2 {
			t.Errorf("%d streams: no cut has bitten", streams)
		}
	})
}

// resume/cross-transport.
func TestWatchGoesOnOverAnotherTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		down := map[string]bool{}
		s := openSite(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				name := "chunked"
				switch {
				case r.Header.Get("Upgrade") != "":
					name = "websocket"
				case r.ProtoMajor == 2:
					name = "h2"
				}
				mu.Lock()
				refuse := down[name]
				mu.Unlock()
				if refuse {
					http.Error(w, "not here", http.StatusNotImplemented)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		o := s.put(t, "a", 0)
		r := s.remote(t, "h2", "websocket", "chunked")
		opened := make(chan string, 10)
		r.Trace = &Trace{Opened: func(name string, _ listwatch.Version) { opened <- name }}
		w := watch(t, r, listwatch.Query{Start: listwatch.At, Version: o.Version})
		for i, name := range []string{"h2", "websocket", "chunked"} {
			if got := <-opened; got != name {
				t.Fatalf("opened over %s, want %s", got, name)
			}
			o := s.put(t, "a", i+1)
			if e := next(t, w, 1)[0]; e.Version != o.Version {
				t.Fatalf("got %s, want version %d", spell(e), o.Version)
			}
			mu.Lock()
			down[name] = true
			mu.Unlock()
			s.each((*memnet.Conn).Reset)
		}
		w.Close()
	})
}

// drop/client-half-open.
func TestAServerThatVanishedIsNoticed(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := openSite(t, nil)
		o := s.put(t, "a", 0)
		w := watch(t, s.remote(t, name), from(int(o.Version)))
		synctest.Wait()
		var lost []*memnet.Conn
		s.each(func(c *memnet.Conn) { c.Stall(true); lost = append(lost, c) })
		start := time.Now()
		o = s.put(t, "a", 1)
		for _, e := range next(t, w, 1) {
			if e.Version != o.Version {
				t.Errorf("got %s, want version %d", spell(e), o.Version)
			}
		}
		if took := time.Since(start); took > DefaultIdleTimeout+5*time.Second {
			t.Errorf("it took %v, want about %v", took, DefaultIdleTimeout)
		}
		for _, c := range lost {
			c.Stall(false) // lets the server see the end of its connection
		}
	})
}

func TestAWatchOutlivesItsTimeoutsQuietly(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := openSite(t, nil)
		o := s.put(t, "a", 0)
		r := s.remote(t, name)
		streams := 0
		r.Trace = &Trace{Opened: func(string, listwatch.Version) { streams++ }, Lost: func(err error, _ time.Duration) {
			if err != io.EOF {
				t.Errorf("lost a stream: %v", err)
			}
		}}
		w := watch(t, r, listwatch.Query{Start: listwatch.At, Version: o.Version})
		for i := range 48 {
			time.Sleep(time.Hour)
			o := s.put(t, "a", i+1)
			if e := next(t, w, 1)[0]; e.Version != o.Version {
				t.Fatalf("got %s, want version %d", spell(e), o.Version)
			}
		}
		w.Close()
		synctest.Wait()
		if streams < 48 || streams > 100 {
			t.Errorf("%d streams in 48 hours, want each to last 30 to 60 minutes", streams)
		}
	})
}

// error/html-502 and error/retry-after.
func TestAProxyInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		tries := 0
		s := openSite(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				tries++
				n := tries
				mu.Unlock()
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
					next.ServeHTTP(w, r)
				}
			})
		})
		o := s.put(t, "a", 0)
		r := s.remote(t, "chunked")
		var lost []error
		var waits []time.Duration
		r.Trace = &Trace{Lost: func(err error, wait time.Duration) { lost, waits = append(lost, err), append(waits, wait) }}
		w := watch(t, r, listwatch.Query{Start: listwatch.At, Version: o.Version})
		s.each((*memnet.Conn).Reset)
		o = s.put(t, "a", 1)
		if e := next(t, w, 1)[0]; e.Version != o.Version {
			t.Errorf("got %s, want version %d", spell(e), o.Version)
		}
		w.Close()
		synctest.Wait()
		if len(lost) != 4 {
			t.Fatalf("lost %d streams, want 4: %v", len(lost), lost)
		}
		if e := lost[1].Error(); len(e) > 300 || listwatch.CodeOf(lost[1]) != listwatch.Unavailable {
			t.Errorf("got an error of %d bytes: %.300s", len(e), e)
		}
		if waits[2] < time.Minute || waits[2] > 65*time.Second || waits[3] < 118*time.Second || waits[3] > 130*time.Second {
			t.Errorf("waited %v and %v, want a minute and two", waits[2], waits[3])
		}
	})
}

func TestARemoteLeavesNothingBehind(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := openSite(t, nil)
		r := s.remote(t, name)
		for i := range 100 {
			w := watch(t, r, listwatch.Query{})
			if i%2 == 0 {
				s.put(t, "a", i)
				next(t, w, 1)
			}
			w.Close()
		}
		synctest.Wait()
		for range 3 {
			time.Sleep(time.Second) // the server takes a moment to see them go
		}
		if n := len(s.server.Watches()); n != 0 {
			t.Errorf("%d watches are open at the server", n)
		}
	})
}

func TestRemotesAreSafeForConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openSite(t, nil)
		r := s.remote(t, transportNames...)
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
