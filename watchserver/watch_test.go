package watchserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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

type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// A rig is a server over a store, on a network in memory, and the clients of all transports.
type rig struct {
	*testing.T
	flags   *store.Typed[Flag]
	server  *watchserver.Server
	net     *memnet.Listener
	clients []transport.Client
}

// newRig starts a rig; configure may be nil. It must be called in a synctest bubble, which the server then belongs to.
func newRig(t *testing.T, configure func(*watchserver.Server)) *rig {
	r := &rig{T: t, flags: memory.New[Flag](), net: memnet.Listen()}
	r.server = &watchserver.Server{Source: r.flags}
	if configure != nil {
		configure(r.server)
	}
	hs := &http.Server{Handler: r.server}
	h2.Configure(hs, transport.Options{})
	go hs.Serve(r.net)
	network := transport.Network{Dial: r.net.Dial}
	r.clients = []transport.Client{
		&chunked.Client{Network: network}, &h2.Client{Network: network}, &websocket.Client{Network: network},
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.server.Drain(ctx); err != nil {
			t.Errorf("drain at the end: %v", err)
		}
		hs.Close()
		for _, c := range r.clients {
			if c, ok := c.(io.Closer); ok {
				c.Close()
			}
		}
	})
	return r
}

func (r *rig) put(name string, labels map[string]string) *Flag {
	r.Helper()
	flag, err := r.flags.Create(r.Context(), Flag{Metadata: listwatch.Metadata{Name: name, Labels: labels}})
	if errors.Is(err, listwatch.AlreadyExists) {
		flag, err = r.flags.Update(r.Context(), listwatch.Key{Name: name}, func(f *Flag) error {
			f.Enabled, f.Labels = !f.Enabled, labels
			return nil
		})
	}
	if err != nil {
		r.Fatal(err)
	}
	return &flag
}

// dial opens a watch over c.
func (r *rig) dial(c transport.Client, query string) *received {
	r.Helper()
	rec, err := r.tryDial(c, query)
	if err != nil {
		r.Fatalf("%s: watch %q: %v", c.Name(), query, err)
	}
	r.Cleanup(func() { rec.Close() })
	return rec
}

func (r *rig) tryDial(c transport.Client, query string) (*received, error) {
	u := &url.URL{Scheme: "http", Host: "memnet", Path: "/flags", RawQuery: query}
	rec, err := c.Dial(context.Background(), &transport.Request{URL: u})
	if err != nil {
		return nil, err
	}
	return &received{r, c.Name(), rec}, nil
}

// received is a stream as a test reads it.
type received struct {
	*rig
	name string
	transport.Receiver
}

// want reads events and holds them against lines of the form "ADDED a".
func (r *received) want(lines ...string) (versions []listwatch.Version) {
	r.Helper()
	for _, line := range lines {
		w, err := r.Receive()
		if err != nil {
			r.Fatalf("%s: got %v, want %s", r.name, err, line)
		}
		e, err := w.Event()
		if err != nil {
			r.Fatalf("%s: %s event: %v, want %s", r.name, w.Type, err, line)
		}
		if got := strings.TrimSpace(e.Type.String() + " " + e.Object.Key.Name); got != line {
			r.Fatalf("%s: got %q, want %q", r.name, got, line)
		}
		versions = append(versions, e.Version)
	}
	return versions
}

// wantError reads the ERROR event that must come now, and the clean end behind it.
func (r *received) wantError(code listwatch.Code) *listwatch.Error {
	r.Helper()
	w, err := r.Receive()
	if err != nil {
		r.Fatalf("%s: got %v, want an ERROR event", r.name, err)
	}
	if _, err = w.Event(); !errors.Is(err, code) || !listwatch.AsError(err).Remote {
		r.Fatalf("%s: got a %s event (%v), want ERROR of code %v", r.name, w.Type, err, code)
	}
	r.wantEnd()
	return listwatch.AsError(err)
}

func (r *received) wantEnd() {
	r.Helper()
	if w, err := r.Receive(); err != io.EOF {
		r.Fatalf("%s: got %s %s, %v; want a clean end", r.name, w.Type, w.Object, err)
	}
}

// overAll runs f in a bubble of its own for each transport.
func overAll(t *testing.T, configure func(*watchserver.Server), f func(r *rig, c transport.Client)) {
	for i, name := range []string{"chunked", "h2", "websocket"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, configure)
				f(r, r.clients[i])
			})
		})
	}
}

func TestWatchShowsStateThenEveryChange(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		r.put("b", nil)
		r.put("a", nil)
		w := r.dial(c, "watch=1")
		w.want("ADDED a", "ADDED b")
		flag := r.put("a", nil)
		versions := w.want("MODIFIED a")
		if versions[0] != flag.Version() {
			r.Errorf("the event has version %d, the write %d", versions[0], flag.Version())
		}
		if _, err := r.flags.Delete(r.Context(), listwatch.Key{Name: "b"}); err != nil {
			r.Fatal(err)
		}
		w.want("DELETED b")
	})
}

func TestWatchResumesWithoutGap(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		at := r.put("a", nil).Version()
		r.put("b", nil)
		r.put("a", nil)
		w := r.dial(c, fmt.Sprintf("watch=1&resourceVersion=%d", at))
		w.want("ADDED b", "MODIFIED a")
		w.Close()
		r.put("c", nil)
		r.dial(c, fmt.Sprintf("watch=1&resourceVersion=%d", at+2)).want("ADDED c")
	})
}

func TestStreamingListEndsWithItsBookmark(t *testing.T) {
	const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	overAll(t, nil, func(r *rig, c transport.Client) {
		r.dial(c, query).want("BOOKMARK")
		r.put("a", nil)
		last := r.put("b", nil).Version()
		w := r.dial(c, query)
		if v := w.want("ADDED a", "ADDED b", "BOOKMARK"); v[2] != last {
			r.Errorf("the bookmark is at %d, want the newest version %d", v[2], last)
		}
		r.put("b", nil)
		w.want("MODIFIED b")
	})
}

func TestSelectorTurnsLeavingIntoDeleted(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		w := r.dial(c, "watch=1&labelSelector=on%3Dyes")
		yes, no := map[string]string{"on": "yes"}, map[string]string{"on": "no"}
		r.put("other", no)
		r.put("a", yes)
		left := r.put("a", no).Version()
		r.put("a", no)
		r.put("a", yes)
		if v := w.want("ADDED a", "DELETED a", "ADDED a"); v[1] != left {
			r.Errorf("the DELETED has version %d, want that of the update, %d", v[1], left)
		}
	})
}

func TestTooOldVersionIsToldInTheStream(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		err := r.dial(c, "watch=1&resourceVersion=1").wantError(listwatch.Expired)
		if err.Reason != "Expired" || err.Status != http.StatusGone {
			r.Errorf("got reason %q and status %d, want Expired and 410", err.Reason, err.Status)
		}
	})
}

func TestFutureVersionIsGivenUpAfterThreeSeconds(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		start := time.Now()
		err := r.dial(c, fmt.Sprintf("watch=1&resourceVersion=%d", r.put("a", nil).Version()+100)).wantError(listwatch.NotYet)
		if took := time.Since(start); took != 3*time.Second {
			r.Errorf("told after %v, want 3s", took)
		}
		if err.Status != http.StatusGatewayTimeout || err.RetryAfter() != time.Second {
			r.Errorf("got status %d, retry after %v; want 504 and 1s", err.Status, err.RetryAfter())
		}
	})
}

func TestTimeoutSecondsIsACleanEndHoweverBusy(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		r.put("a", nil)
		start := time.Now()
		w := r.dial(c, "watch=1&timeoutSeconds=10&allowWatchBookmarks=true")
		w.want("ADDED a", "BOOKMARK")
		w.want("BOOKMARK")
		if took := time.Since(start); took != 8*time.Second {
			r.Errorf("a bookmark after %v, want 2s before the end", took)
		}
		w.want("BOOKMARK")
		w.wantEnd()
		if took := time.Since(start); took != 10*time.Second {
			r.Errorf("ended after %v, want 10s", took)
		}
	})
}

func TestDefaultTimeoutIsSpread(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		start := time.Now()
		r.dial(c, "watch=1").wantEnd()
		if took := time.Since(start); took < 30*time.Minute || took > time.Hour {
			r.Errorf("ended after %v, want between 30 and 60 minutes", took)
		}
	})
}

func TestBookmarksComeOnlyWhenAskedForAndMoveOnForSilentWatchers(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		at := r.put("a", nil).Version()
		quiet := fmt.Sprintf("watch=1&resourceVersion=%d&labelSelector=none%%3Dsuch&timeoutSeconds=600", at)
		without, ended := r.dial(c, quiet), make(chan struct{})
		go func() {
			defer close(ended)
			without.wantEnd()
		}()
		with := r.dial(c, quiet+"&allowWatchBookmarks=1")
		last := at
		for range 5 {
			now := r.put("a", nil).Version()
			start := time.Now()
			if v := with.want("BOOKMARK"); v[0] != now || v[0] <= last {
				r.Errorf("a bookmark at %d, want %d", v[0], now)
			}
			if took := time.Since(start); took < 45*time.Second || took > 75*time.Second {
				r.Errorf("a bookmark after %v, want about a minute", took)
			}
			last = now
		}
		with.Close()
		<-ended
	})
}

func TestDrainEndsEveryWatchWithALastBookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var open []*received
		for _, c := range r.clients {
			w := r.dial(c, "watch=1&allowWatchBookmarks=true")
			w.want("BOOKMARK")
			open = append(open, w)
		}
		last := r.put("a", nil).Version()
		drained := make(chan error)
		start := time.Now()
		go func() { drained <- r.server.Drain(t.Context()) }()
		for _, w := range open {
			if v := w.want("ADDED a", "BOOKMARK"); v[1] != last {
				t.Errorf("%s: last bookmark at %d, want %d", w.name, v[1], last)
			}
			w.wantEnd()
		}
		if err := <-drained; err != nil || time.Since(start) >= time.Second {
			t.Errorf("Drain: %v after %v, want nil within a second", err, time.Since(start))
		}
		_, err := r.tryDial(r.clients[0], "watch=1")
		if e := listwatch.AsError(err); !errors.Is(err, listwatch.Unavailable) || e.Status != http.StatusServiceUnavailable || e.RetryAfter() == 0 {
			t.Errorf("a watch after Drain: %v, want 503 with Retry-After", err)
		}
	})
}

// drain/final-bookmark: the server is in the middle of a step when an object is written and the drain begins.
func TestDrainSendsWhatWasWrittenBeforeIt(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		drained := make(chan error, 1)
		r.server.Source = interrupted{r.flags, func() {
			r.put("b", nil)
			go func() { drained <- r.server.Drain(r.Context()) }()
			synctest.Wait()
		}}
		w := r.dial(c, "watch=1&allowWatchBookmarks=true")
		w.want("BOOKMARK")
		r.put("a", nil)
		w.want("ADDED a", "ADDED b", "BOOKMARK")
		w.wantEnd()
		if err := <-drained; err != nil {
			r.Error(err)
		}
	})
}

func TestDrainIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(s *watchserver.Server) { s.Timing.DrainSpread = time.Minute })
		const watches = 200
		ended := make(chan time.Duration, watches)
		var start time.Time
		for range watches {
			w := r.dial(r.clients[2], "watch=1")
			go func() {
				w.wantEnd()
				ended <- time.Since(start)
			}()
		}
		synctest.Wait()
		start = time.Now()
		if err := r.server.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		thirds := make([]int, 3)
		for range watches {
			thirds[min(int(<-ended/(20*time.Second)), 2)]++
		}
		for i, n := range thirds {
			if n < watches/6 {
				t.Errorf("%d of %d watches ended in third %d of the minute: %v", n, watches, i+1, thirds)
			}
		}
	})
}

func TestDrainCutsOffAStuckClientAtItsDeadline(t *testing.T) {
	overAll(t, func(s *watchserver.Server) { s.Limits.WriteTimeout = -1 }, func(r *rig, c transport.Client) {
		r.dial(c, "watch=1") // and never read
		for range 20 {
			if _, err := r.flags.Create(r.Context(), Flag{Metadata: listwatch.Metadata{
				GenerateName: "x-", Annotations: map[string]string{"much": strings.Repeat("x", 100<<10)},
			}}); err != nil {
				r.Fatal(err)
			}
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := r.server.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			r.Errorf("Drain: %v after %v, want the deadline after 5s", err, time.Since(start))
		}
	})
}

func TestStalledClientIsCutOffAndOthersGoOn(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		healthy := r.dial(r.clients[0], "watch=1")
		r.dial(c, "watch=1") // and never read
		big := Flag{Metadata: listwatch.Metadata{GenerateName: "x-", Annotations: map[string]string{"much": strings.Repeat("x", 100<<10)}}}
		for range 20 {
			if _, err := r.flags.Create(r.Context(), big); err != nil {
				r.Fatal(err)
			}
			if _, err := healthy.Receive(); err != nil {
				r.Fatalf("the healthy client: %v", err)
			}
		}
		for len(r.server.Watches()) == 2 {
			time.Sleep(time.Second)
		}
	})
}

func TestClientGoneReleasesTheWatch(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		w := r.dial(c, "watch=1")
		w.Close()
		synctest.Wait()
		start := time.Now()
		for len(r.server.Watches()) > 0 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(start); took > 250*time.Millisecond {
			r.Errorf("released after %v", took)
		}
	})
}

func TestWatchLimits(t *testing.T) {
	limits := func(s *watchserver.Server) {
		s.Limits.Watches, s.Limits.WatchesPerClient = 3, 2
		s.ClientOf = func(r *http.Request) string { return r.URL.Query().Get("client") }
	}
	overAll(t, limits, func(r *rig, c transport.Client) {
		first := r.dial(c, "watch=1&client=a")
		r.dial(c, "watch=1&client=a")
		for _, client := range []string{"a", "b", "c"} {
			w, err := r.tryDial(c, "watch=1&client="+client)
			if client == "b" {
				if err != nil {
					r.Fatal(err)
				}
				defer w.Close()
				continue
			}
			if e := listwatch.AsError(err); e == nil || e.Status != http.StatusTooManyRequests || e.RetryAfter() == 0 {
				r.Fatalf("client %s: got %v, want 429 with Retry-After", client, err)
			}
		}
		first.Close()
		synctest.Wait()
		for len(r.server.Watches()) > 2 {
			time.Sleep(time.Millisecond)
		}
		r.dial(c, "watch=1&client=c")
	})
}

// A source that panics must not take the server down, nor let its client wait.
func TestPanicIsContained(t *testing.T) {
	overAll(t, nil, func(r *rig, c transport.Client) {
		r.server.Source = panicking{r.flags}
		r.server.Log = discard
		r.dial(c, "watch=1").wantError(listwatch.Unknown)
		r.server.Source = r.flags
		r.dial(c, "watch=1")
	})
}

func TestHeartbeatOfAnIdleEventSourceMovesItsIDOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		conn, err := r.net.Dial(t.Context(), "tcp", "x")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		at := r.put("a", nil).Version()
		fmt.Fprintf(conn, "GET /?watch=1&resourceVersion=%d&labelSelector=none HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n", at)
		body := bufio.NewReader(conn)
		now := r.put("a", nil).Version()
		start := time.Now()
		for {
			line, err := body.ReadString('\n')
			if err != nil {
				t.Fatalf("no heartbeat: %v", err)
			}
			if strings.TrimSpace(line) == fmt.Sprintf("id: %d", now) {
				break
			}
		}
		if took := time.Since(start); took != watchserver.DefaultHeartbeat {
			t.Errorf("the heartbeat came after %v, want %v", took, watchserver.DefaultHeartbeat)
		}
	})
}

func TestListIsKubernetesList(t *testing.T) {
	flags := memory.New[Flag]()
	for _, name := range []string{"b", "a", "c"} {
		if _, err := flags.Create(t.Context(), Flag{Metadata: listwatch.Metadata{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(query string) (list struct {
		Kind, APIVersion string
		Metadata         struct {
			ResourceVersion, Continue string
			RemainingItemCount        *int
		}
		Items []Flag
	},
	) {
		w := httptest.NewRecorder()
		(&watchserver.Server{Source: flags}).ServeHTTP(w, httptest.NewRequest("GET", "/?"+query, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
			t.Fatalf("list %q: %d %s", query, w.Code, w.Body)
		}
		return list
	}
	all := get("pretty=1")
	if all.Kind != "FlagList" || all.APIVersion != "v1" || len(all.Items) != 3 || all.Items[0].Name != "a" || all.Metadata.ResourceVersion == "" {
		t.Errorf("got %+v", all)
	}
	first := get("limit=2")
	if len(first.Items) != 2 || first.Metadata.RemainingItemCount == nil || *first.Metadata.RemainingItemCount != 1 {
		t.Errorf("first page: %+v", first)
	}
	flags.Delete(t.Context(), listwatch.Key{Name: "c"})
	second := get("limit=2&continue=" + first.Metadata.Continue)
	if len(second.Items) != 1 || second.Items[0].Name != "c" || second.Metadata.Continue != "" || second.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
		t.Errorf("second page: %+v, want what the first one's snapshot has left", second)
	}
}
