package watchserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A traceRecorder records the calls of the hooks of a Trace.
type traceRecorder struct {
	mu sync.Mutex
	// Guarded by mu.
	opened  []watchserver.Watch
	writes  []watchserver.Write
	reasons []watchserver.EndReason
	errors  []error
	users   []string // the user in the context of each hook
}

func (t *traceRecorder) record(ctx context.Context, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users = append(t.users, watchserver.UserOf(ctx).Name)
	f()
}

func (t *traceRecorder) trace() *watchserver.Trace {
	return &watchserver.Trace{
		Opened: func(ctx context.Context, w watchserver.Watch) {
			t.record(ctx, func() { t.opened = append(t.opened, w) })
		},
		Sent: func(ctx context.Context, _ watchserver.Watch, sent watchserver.Write) {
			t.record(ctx, func() { t.writes = append(t.writes, sent) })
		},
		Closed: func(ctx context.Context, _ watchserver.Watch, reason watchserver.EndReason, err error) {
			t.record(ctx, func() { t.reasons, t.errors = append(t.reasons, reason), append(t.errors, err) })
		},
	}
}

// lastReason returns the reason for the end of the last watch that ended.
func (t *traceRecorder) lastReason() watchserver.EndReason {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reasons) == 0 {
		return ""
	}
	return t.reasons[len(t.reasons)-1]
}

// traced records the hooks of the watches of f. The context of each request has a user.
func (f *fixture) traced() *traceRecorder {
	recorder := new(traceRecorder)
	f.WatchServer.Trace = recorder.trace()
	f.wrap = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(watchserver.WithUser(r.Context(), watchserver.User{Name: "ann"})))
		})
	}
	return recorder
}

func TestHooksReceiveTheContextOfTheRequest(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		recorder := f.traced()
		f.put("a", nil)
		w := f.watch(c, "timeoutSeconds=1")
		w.want("ADDED a")
		w.wantEnd()
		synctest.Wait()
		recorder.mu.Lock()
		defer recorder.mu.Unlock()
		if len(recorder.users) < 3 {
			f.Errorf("%d hooks were called, want Opened, Sent and Closed", len(recorder.users))
		}
		for _, user := range recorder.users {
			if user != "ann" {
				f.Errorf("the context of a hook has user %q, want ann", user)
			}
		}
		got := recorder.opened[0].Request
		for name, value := range map[string]string{
			"Proto": got.Proto, "RemoteAddr": got.RemoteAddr, "Client": got.Client,
		} {
			if value == "" {
				f.Errorf("%s: %s of the request is empty: %+v", c.Name(), name, got)
			}
		}
		got.Proto, got.RemoteAddr, got.Client = "", "", ""
		want := watchserver.Request{User: "ann", Method: http.MethodGet, Path: "/flags", Resource: got.Resource}
		if got != want {
			f.Errorf("%s: got %+v, want %+v", c.Name(), got, want)
		}
	})
}

func TestLagIsTheTimeFromCommitToWrite(t *testing.T) {
	const stall = 7 * time.Second
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		recorder := f.traced()
		start := f.put("older", nil).ResourceVersion
		f.put("old", nil)
		time.Sleep(time.Hour) // an old event must not count as lag
		w := f.watch(c, "resourceVersion="+start)
		w.want("ADDED old")
		f.put("prompt", nil)
		w.want("ADDED prompt")
		for _, conn := range f.Conns() {
			conn.Stall(true)
		}
		f.fill()
		// Over HTTP/2 a write ends when its bytes are in the buffer of the connection, which a step
		// may fill with any number of events. The next step waits until the client has read them.
		synctest.Wait()
		f.put("stalled", nil)
		time.Sleep(stall)
		for _, conn := range f.Conns() {
			conn.Stall(false)
		}
		for range fillEvents + 1 {
			if _, err := w.Receive(); err != nil {
				f.Fatal(err)
			}
		}
		synctest.Wait()

		recorder.mu.Lock()
		defer recorder.mu.Unlock()
		var lags []time.Duration
		for _, sent := range recorder.writes {
			if sent.Events > 0 {
				lags = append(lags, sent.Lag)
			}
		}
		if len(lags) < 3 || lags[0] != 0 || lags[1] != 0 {
			f.Fatalf("got lags %v, want none for an event older than the watch and for a prompt one", lags)
		}
		if last := lags[len(lags)-1]; last != stall {
			f.Errorf("got lags %v, want %v at the end", lags, stall)
		}
	})
}

func TestEndsHaveReasons(t *testing.T) {
	for name, end := range map[string]struct {
		want watchserver.EndReason
		run  func(f *fixture, c transport.Client)
	}{
		"timeout": {watchserver.EndComplete, func(f *fixture, c transport.Client) {
			f.watch(c, "timeoutSeconds=1").wantEnd()
		}},
		"disconnect": {watchserver.EndClientGone, func(f *fixture, c transport.Client) {
			f.watch(c, "").Close()
		}},
		"drain": {watchserver.EndDrained, func(f *fixture, c transport.Client) {
			w := f.watch(c, "")
			if err := f.WatchServer.Drain(f.Context()); err != nil {
				f.Error(err)
			}
			w.wantEnd()
		}},
		"expired history": {watchserver.EndExpired, func(f *fixture, c transport.Client) {
			f.watch(c, "resourceVersion=1").wantError(listwatch.Expired)
		}},
		"future version": {watchserver.EndFailed, func(f *fixture, c transport.Client) {
			f.watch(c, "resourceVersion=99999999999999999").wantError(listwatch.NotYet)
		}},
		"forbidden by the source": {watchserver.EndRefused, func(f *fixture, c transport.Client) {
			log := history.New(history.Options{})
			f.WatchServer.Source = log
			w := f.watch(c, "")
			log.CloseWithError(&listwatch.Error{Code: listwatch.Forbidden, Message: "no longer a member"})
			w.wantError(listwatch.Forbidden)
		}},
		"client that does not read": {watchserver.EndTooSlow, stallWithLargeEvents},
		"drain of a client that does not read": {watchserver.EndDrained, func(f *fixture, c transport.Client) {
			stallWithLargeEvents(f, c)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			_ = f.WatchServer.Drain(ctx) // returns the error of ctx
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachTransport(t, nil, func(f *fixture, c transport.Client) {
				recorder := f.traced()
				end.run(f, c)
				synctest.Wait() // the server counts a watch after it has sent the headers
				for len(f.WatchServer.Watches()) > 0 {
					time.Sleep(time.Second)
				}
				synctest.Wait()
				recorder.mu.Lock()
				defer recorder.mu.Unlock()
				if len(recorder.reasons) != 1 || recorder.reasons[0] != end.want ||
					(recorder.errors[0] == nil) != (end.want == watchserver.EndComplete) {
					f.Errorf("got reasons %q with errors %v, want %q", recorder.reasons, recorder.errors, end.want)
				}
			})
		})
	}
}

func stallWithLargeEvents(f *fixture, c transport.Client) {
	f.watch(c, "") // is never read
	f.fill()
}

const fillEvents = 8

// fill writes fillEvents events, which are more than the buffers of a connection can hold.
func (f *fixture) fill() {
	f.Helper()
	big := Flag{Metadata: listwatch.Metadata{
		GenerateName: "x-",
		Annotations:  map[string]string{"much": strings.Repeat("x", 100<<10)},
	}}
	for range fillEvents {
		if _, err := f.flags.Create(f.Context(), big); err != nil {
			f.Fatal(err)
		}
	}
}

// ann is an Authenticator for which every request has the user ann.
func ann(*http.Request) (watchserver.User, error) {
	return watchserver.User{Name: "ann"}, nil
}

func TestTraceSeesListsAndRefusals(t *testing.T) {
	f := newFixture(t, func(s *watchserver.Server) { s.Access.Authenticator = ann })
	f.put("a", nil)
	var lists []watchserver.List
	refused := map[string]error{}
	f.WatchServer.Trace = &watchserver.Trace{
		Listed:  func(_ context.Context, l watchserver.List) { lists = append(lists, l) },
		Refused: func(_ context.Context, r watchserver.Request, err error) { refused[r.Method+" "+r.Path] = err },
	}
	var bodies []string
	for _, request := range []string{"GET /flags", "HEAD /flags?limit=1", "GET /flags?limit=x", "POST /flags?watch=1"} {
		method, url, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, url, nil)
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		f.WatchServer.ServeHTTP(w, r)
		bodies = append(bodies, w.Body.String())
	}
	if len(lists) != 2 {
		t.Fatalf("got lists %+v, want two", lists)
	}
	if l := lists[0]; l.Items != 1 || l.Bytes != int64(len(bodies[0])) || l.Version == 0 || l.User != "ann" {
		t.Errorf("got the list %+v, want one item of ann in %d bytes, and a version", l, len(bodies[0]))
	}
	if l := lists[1]; l.Method != http.MethodHead || l.Bytes != 0 {
		t.Errorf("got the list %+v, want a HEAD without a body", l)
	}
	if len(refused) != 2 || refused["GET /flags"] == nil || refused["POST /flags"] == nil {
		t.Errorf("got refusals %v, want the last two requests", refused)
	}
}

func TestJoinedTracesAllReceiveEachCall(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		first := f.traced()
		second := new(traceRecorder)
		withoutSent := second.trace()
		withoutSent.Sent = nil
		f.WatchServer.Trace = watchserver.JoinTraces(first.trace(), nil, withoutSent, new(watchserver.Trace))
		f.put("a", nil)
		w := f.watch(c, "timeoutSeconds=1")
		w.want("ADDED a")
		w.wantEnd()
		synctest.Wait()
		if len(first.opened) != 1 || len(first.writes) == 0 || len(first.reasons) != 1 {
			t.Errorf("the first trace: got %d opened, %d writes, %d closed, want 1, some and 1", len(first.opened),
				len(first.writes), len(first.reasons))
		}
		if len(second.opened) != 1 || len(second.reasons) != 1 {
			t.Errorf("the second trace: got %d opened, %d closed, want 1 and 1", len(second.opened),
				len(second.reasons))
		}
	})
	if watchserver.JoinTraces(new(watchserver.Trace)).Sent != nil {
		t.Error("Sent is set although no trace has it")
	}
}

func TestHooksReceiveTheResource(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		recorder := f.traced()
		f.put("a", nil)
		w := f.watch(c, "timeoutSeconds=1")
		w.want("ADDED a")
		w.wantEnd()
		synctest.Wait()
		want := watchserver.Resource(apihttp.DescribeResource(f.WatchServer.Source, ""))
		if got := recorder.opened[0].Resource; got != want || want.Version == "" || want.Name == "" {
			t.Errorf("got resource %+v, want %+v", got, want)
		}
	})
}

func TestWatchIsCaughtUpOnceItHasSentAll(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.put("a", nil)
		w := f.watch(c, "")
		w.want("ADDED a")
		synctest.Wait()
		if got := f.WatchServer.Watches(); len(got) != 1 || !got[0].CaughtUp {
			t.Errorf("got %+v, want one watch that has caught up", got)
		}
	})
}

func TestRefusalsNameTheLimit(t *testing.T) {
	var limits []string
	s := &watchserver.Server{
		Source: history.New(history.Options{}),
		Limits: watchserver.Limits{URLBytes: 10, HeaderBytes: 10},
		Trace: &watchserver.Trace{Refused: func(_ context.Context, _ watchserver.Request, err error) {
			name := ""
			if e, ok := errors.AsType[*apihttp.LimitError](err); ok {
				name = e.Limit()
			}
			limits = append(limits, name)
		}},
	}
	for _, target := range []string{"/0123456789", "/", "/?limit=x"} {
		r := httptest.NewRequest("GET", target, nil)
		if target == "/" {
			r.Header.Set("Accept", "application/json")
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	if want := []string{"url_bytes", "header_bytes", ""}; !slices.Equal(limits, want) {
		t.Errorf("got limits %q, want %q", limits, want)
	}
}
