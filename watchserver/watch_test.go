package watchserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

func TestWatchSendsStateThenChanges(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.put("b", nil)
		f.put("a", nil)
		w := f.watch(c, "")
		w.want("ADDED a", "ADDED b")
		flag := f.put("a", nil)
		versions := w.want("MODIFIED a")
		if versions[0] != flag.Version() {
			f.Errorf("got version %d, want %d, the version of the write", versions[0], flag.Version())
		}
		if _, err := f.flags.Delete(f.Context(), listwatch.Key{Name: "b"}, 0); err != nil {
			f.Fatal(err)
		}
		w.want("DELETED b")
	})
}

func TestWatchResumesWithoutGap(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		at := f.put("a", nil).Version()
		f.put("b", nil)
		f.put("a", nil)
		w := f.watch(c, fmt.Sprintf("resourceVersion=%d", at))
		w.want("ADDED b", "MODIFIED a")
		w.Close()
		f.put("c", nil)
		f.watch(c, fmt.Sprintf("resourceVersion=%d", at+2)).want("ADDED c")
	})
}

// A page lists with fetch, and opens an EventSource at the version of the list. When the
// EventSource reconnects, the browser sends the same URL and its position as Last-Event-ID.
func TestLastEventIDTakesPrecedenceOverTheURL(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		listed := f.put("a", nil).Version()
		seen := f.put("b", nil).Version()
		f.put("c", nil)
		for _, query := range []string{
			"", "resourceVersion=0", fmt.Sprintf("resourceVersion=%d", listed),
			fmt.Sprintf("resourceVersion=%d", seen+1),
			fmt.Sprintf("resourceVersion=%d&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", listed),
		} {
			r, err := c.Dial(f.Context(), &transport.Request{
				URL: f.WatchURL("/flags", query), Header: http.Header{"Last-Event-Id": {seen.String()}},
			})
			if err != nil {
				f.Fatalf("%s: reconnect to %q: %v", c.Name(), query, err)
			}
			w := &openWatch{f, c.Name(), r}
			w.want("ADDED c")
			w.Close()
		}
	})
}

func TestInitialEventsEndWithABookmark(t *testing.T) {
	const query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.watch(c, query).want("BOOKMARK")
		f.put("a", nil)
		last := f.put("b", nil).Version()
		w := f.watch(c, query)
		if v := w.want("ADDED a", "ADDED b", "BOOKMARK"); v[2] != last {
			f.Errorf("got a bookmark at %d, want %d, the newest version", v[2], last)
		}
		f.put("b", nil)
		w.want("MODIFIED b")
	})
}

func TestLeavingTheSelectionIsADelete(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		w := f.watch(c, "labelSelector=on%3Dyes")
		yes, no := map[string]string{"on": "yes"}, map[string]string{"on": "no"}
		f.put("other", no)
		f.put("a", yes)
		left := f.put("a", no).Version()
		f.put("a", no)
		f.put("a", yes)
		if v := w.want("ADDED a", "DELETED a", "ADDED a"); v[1] != left {
			f.Errorf("got DELETED with version %d, want %d, the version of the update", v[1], left)
		}
	})
}

func TestAnExpiredVersionIsAnErrorEvent(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		err := f.watch(c, "resourceVersion=1").wantError(listwatch.Expired)
		if err.Reason != "Expired" || err.Status != http.StatusGone {
			f.Errorf("got reason %q and status %d, want Expired and 410", err.Reason, err.Status)
		}
	})
}

func TestAFutureVersionFailsAfterThreeSeconds(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		start := time.Now()
		err := f.watch(c, fmt.Sprintf("resourceVersion=%d", f.put("a", nil).Version()+100)).wantError(listwatch.NotYet)
		if took := time.Since(start); took != 3*time.Second {
			f.Errorf("got the error after %v, want 3s", took)
		}
		if err.Status != http.StatusGatewayTimeout || err.RetryAfter() != time.Second {
			f.Errorf("got status %d, retry after %v; want 504 and 1s", err.Status, err.RetryAfter())
		}
	})
}

func TestTimeoutSecondsEndsTheWatchCleanly(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.put("a", nil)
		start := time.Now()
		w := f.watch(c, "timeoutSeconds=10&allowWatchBookmarks=true")
		w.want("ADDED a", "BOOKMARK")
		w.want("BOOKMARK")
		if took := time.Since(start); took != 8*time.Second {
			f.Errorf("got a bookmark after %v, want 8s, 2s before the end", took)
		}
		w.want("BOOKMARK")
		w.wantEnd()
		if took := time.Since(start); took != 10*time.Second {
			f.Errorf("got the end after %v, want 10s", took)
		}
	})
}

func TestTheDefaultTimeoutIsRandom(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		start := time.Now()
		f.watch(c, "").wantEnd()
		if took := time.Since(start); took < 30*time.Minute || took > time.Hour {
			f.Errorf("got the end after %v, want between 30 and 60 minutes", took)
		}
	})
}

func TestBookmarksAreOptional(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		at := f.put("a", nil).Version()
		quiet := fmt.Sprintf("resourceVersion=%d&labelSelector=none%%3Dsuch&timeoutSeconds=600", at)
		withoutBookmarks, ended := f.watch(c, quiet), make(chan struct{})
		go func() {
			defer close(ended)
			withoutBookmarks.wantEnd()
		}()
		withBookmarks := f.watch(c, quiet+"&allowWatchBookmarks=1")
		last := at
		for range 5 {
			now := f.put("a", nil).Version()
			start := time.Now()
			if v := withBookmarks.want("BOOKMARK"); v[0] != now || v[0] <= last {
				f.Errorf("got a bookmark at %d, want %d", v[0], now)
			}
			if took := time.Since(start); took < 45*time.Second || took > 75*time.Second {
				f.Errorf("got a bookmark after %v, want about a minute", took)
			}
			last = now
		}
		withBookmarks.Close()
		<-ended
	})
}

func TestDrainEndsWatchesWithABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var open []*openWatch
		for _, c := range f.Clients() {
			w := f.watch(c, "allowWatchBookmarks=true")
			w.want("BOOKMARK")
			open = append(open, w)
		}
		last := f.put("a", nil).Version()
		drained := make(chan error)
		start := time.Now()
		go func() { drained <- f.WatchServer.Drain(t.Context()) }()
		for _, w := range open {
			if v := w.want("ADDED a", "BOOKMARK"); v[1] != last {
				t.Errorf("%s: got the last bookmark at %d, want %d", w.transport, v[1], last)
			}
			w.wantEnd()
		}
		if err := <-drained; err != nil || time.Since(start) >= time.Second {
			t.Errorf("Drain: %v after %v, want nil within a second", err, time.Since(start))
		}
		_, err := f.tryWatch(f.Client("chunked"), "")
		e := testkit.WantStatus(t, "a watch after Drain", err, http.StatusServiceUnavailable)
		if e.Code != listwatch.Unavailable || e.RetryAfter() == 0 {
			t.Errorf("got %v, retry after %v, want Unavailable with Retry-After", err, e.RetryAfter())
		}
	})
}

// A program that exits after Drain must have reported all watches.
func TestDrainWaitsForTraceClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported atomic.Int32
		f := newFixture(t, func(s *watchserver.Server) {
			s.Trace = &watchserver.Trace{Closed: func(context.Context, watchserver.Watch, watchserver.EndReason,
				error,
			) {
				time.Sleep(time.Second)
				reported.Add(1)
			}}
		})
		for _, c := range f.Clients() {
			f.watch(c, "")
		}
		if err := f.WatchServer.Drain(t.Context()); err != nil || int(reported.Load()) != len(f.Clients()) {
			t.Errorf("got %d watches reported after Drain, %v, want %d", reported.Load(), err, len(f.Clients()))
		}
	})
}

// Conformance case drain/final-bookmark. An object is written and the drain begins while
// the stream is in the middle of a step.
func TestDrainSendsEarlierWrites(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		drained := make(chan error, 1)
		f.WatchServer.Source = interruptedSource{f.flags, func() {
			f.put("b", nil)
			go func() { drained <- f.WatchServer.Drain(f.Context()) }()
			synctest.Wait()
		}}
		w := f.watch(c, "allowWatchBookmarks=true")
		w.want("BOOKMARK")
		f.put("a", nil)
		w.want("ADDED a", "ADDED b", "BOOKMARK")
		w.wantEnd()
		if err := <-drained; err != nil {
			f.Error(err)
		}
	})
}

func TestDrainSpreadSpreadsTheEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(s *watchserver.Server) { s.Timing.DrainSpread = time.Minute })
		const watches = 200
		ended := make(chan time.Duration, watches)
		var start time.Time
		for range watches {
			w := f.watch(f.Client("websocket"), "")
			go func() {
				w.wantEnd()
				ended <- time.Since(start)
			}()
		}
		synctest.Wait()
		start = time.Now()
		if err := f.WatchServer.Drain(t.Context()); err != nil {
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

func TestDrainAbortsAStuckClientAtItsDeadline(t *testing.T) {
	onEachTransport(t, func(s *watchserver.Server) { s.Limits.WriteTimeout = -1 },
		func(f *fixture, c transport.Client) {
			f.watch(c, "") // the client never reads
			f.fill()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
			defer cancel()
			start := time.Now()
			if err := f.WatchServer.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) ||
				time.Since(start) != 5*time.Second {
				f.Errorf("Drain: %v after %v, want the deadline after 5s", err, time.Since(start))
			}
		})
}

func TestAStalledClientDoesNotAffectOthers(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		healthy := f.watch(f.Client("chunked"), "")
		f.watch(c, "") // the client never reads
		big := Flag{Metadata: listwatch.Metadata{
			GenerateName: "x-",
			Annotations:  map[string]string{"much": strings.Repeat("x", 100<<10)},
		}}
		for range fillEvents {
			if _, err := f.flags.Create(f.Context(), big); err != nil {
				f.Fatal(err)
			}
			if _, err := healthy.Receive(); err != nil {
				f.Fatalf("the client that reads: %v", err)
			}
		}
		synctest.Wait()
		for len(f.WatchServer.Watches()) == 2 {
			time.Sleep(time.Second)
		}
	})
}

func TestADisconnectReleasesTheWatch(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		w := f.watch(c, "")
		w.Close()
		synctest.Wait()
		start := time.Now()
		for len(f.WatchServer.Watches()) > 0 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(start); took > 250*time.Millisecond {
			f.Errorf("the watch was released after %v, want 250ms at most", took)
		}
	})
}

func TestWatchLimits(t *testing.T) {
	limits := func(s *watchserver.Server) {
		s.Limits.Watches, s.Limits.WatchesPerClient = 3, 2
		s.Access.Authenticator = func(r *http.Request) (watchserver.User, error) {
			return watchserver.User{Name: r.URL.Query().Get("client")}, nil
		}
	}
	onEachTransport(t, limits, func(f *fixture, c transport.Client) {
		first := f.watch(c, "client=a")
		f.watch(c, "client=a")
		for _, client := range []string{"a", "b", "c"} {
			w, err := f.tryWatch(c, "client="+client)
			if client == "b" {
				if err != nil {
					f.Fatal(err)
				}
				defer w.Close()
				continue
			}
			if !isTooMany(err) {
				f.Fatalf("client %s: got %v, want 429 with Retry-After", client, err)
			}
		}
		first.Close()
		synctest.Wait()
		for len(f.WatchServer.Watches()) > 2 {
			time.Sleep(time.Millisecond)
		}
		f.watch(c, "client=c")
	})
}

func isTooMany(err error) bool {
	e := listwatch.AsError(err)
	return e != nil && e.Status == http.StatusTooManyRequests && e.RetryAfter() > 0
}

// The limit of watches bounds their memory, and the selectors of a URL take up to 64 KiB.
func TestLongSelectorsCountAsSeveralWatches(t *testing.T) {
	limits := func(s *watchserver.Server) { s.Limits.Watches = 4 }
	onEachTransport(t, limits, func(f *fixture, c transport.Client) {
		long := "labelSelector=a+in+(" + strings.Repeat("x,", 5<<10) + "y)" // counts as three
		first := f.watch(c, long)
		short := f.watch(c, "")
		if _, err := f.tryWatch(c, ""); !isTooMany(err) {
			f.Fatalf("got %v, want 429", err)
		}
		short.Close()
		synctest.Wait()
		for len(f.WatchServer.Watches()) > 1 {
			time.Sleep(time.Millisecond)
		}
		if _, err := f.tryWatch(c, long); !isTooMany(err) {
			f.Fatalf("a second long selector: got %v, want 429", err)
		}
		first.Close()
		synctest.Wait()
		for len(f.WatchServer.Watches()) > 0 {
			time.Sleep(time.Millisecond)
		}
		f.watch(c, long)
	})
}

// Version 0 means "no version" on the wire, so no client could resume from it.
func TestSourceAtVersionZeroIsRefused(t *testing.T) {
	onEachTransport(t, func(s *watchserver.Server) { s.Source = emptyTable{} }, func(f *fixture, c transport.Client) {
		w := f.watch(c, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		if err := w.wantError(listwatch.Unknown); !strings.Contains(err.Error(),
			"watchserver_test.emptyTable has version 0") {
			f.Errorf("got error %v, want one that names the source", err)
		}
		list := httptest.NewRecorder()
		f.WatchServer.ServeHTTP(list, httptest.NewRequest(http.MethodGet, "/flags", nil))
		if list.Code != http.StatusInternalServerError ||
			!strings.Contains(list.Body.String(), "emptyTable has version 0") {
			f.Errorf("list: got %d %s, want 500 and an error that names the source", list.Code, list.Body)
		}
	})
}

// A panic of a source ends its watch with an error. The server keeps running.
func TestAPanicEndsOneWatch(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.WatchServer.Source = panickingSource{f.flags}
		f.WatchServer.Log = discardLog
		f.watch(c, "").wantError(listwatch.Unknown)
		f.WatchServer.Source = f.flags
		f.watch(c, "")
	})
}

func TestAHeartbeatAdvancesTheEventID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		conn, err := f.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		at := f.put("a", nil).Version()
		fmt.Fprintf(conn,
			"GET /?watch=1&resourceVersion=%d&labelSelector=none HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n", at)
		body := bufio.NewReader(conn)
		now := f.put("a", nil).Version()
		start := time.Now()
		for {
			line, err := body.ReadString('\n')
			if err != nil {
				t.Fatalf("got %v, want a heartbeat", err)
			}
			if strings.TrimSpace(line) == fmt.Sprintf("id: %d", now) {
				break
			}
		}
		if took := time.Since(start); took != watchserver.DefaultHeartbeat {
			t.Errorf("got the heartbeat after %v, want %v", took, watchserver.DefaultHeartbeat)
		}
	})
}

func TestListHasTheFormOfKubernetes(t *testing.T) {
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
			t.Fatalf("list %q: %d %s: %v", query, w.Code, w.Body, err)
		}
		return list
	}
	all := get("pretty=1")
	if all.Kind != "FlagList" || all.APIVersion != "v1" || len(all.Items) != 3 || all.Items[0].Name != "a" ||
		all.Metadata.ResourceVersion == "" {
		t.Errorf("got %+v", all)
	}
	first := get("limit=2")
	if len(first.Items) != 2 || first.Metadata.RemainingItemCount == nil || *first.Metadata.RemainingItemCount != 1 {
		t.Errorf("first page: got %+v, want 2 items and 1 remaining", first)
	}
	flags.Delete(t.Context(), listwatch.Key{Name: "c"}, 0)
	second := get("limit=2&continue=" + first.Metadata.Continue)
	if len(second.Items) != 1 || second.Items[0].Name != "c" || second.Metadata.Continue != "" ||
		second.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
		t.Errorf("second page: got %+v, want the rest of the first page's snapshot", second)
	}
}
