package watchserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// forTenant makes f serve only the flags of tenant, except for one named hidden.
func (f *fixture) forTenant(tenant string) {
	f.Helper()
	labels, err := listwatch.ParseLabelSelector("tenant=" + tenant)
	if err != nil {
		f.Fatal(err)
	}
	fields, err := listwatch.ParseFieldSelector("metadata.name!=hidden")
	if err != nil {
		f.Fatal(err)
	}
	f.endpoint = func(*http.Request) watchserver.Endpoint {
		return watchserver.Endpoint{Source: f.flags, Selection: listwatch.Selection{Labels: labels, Fields: fields}}
	}
}

func of(tenant string) map[string]string { return map[string]string{"tenant": tenant} }

func TestForcedSelectorsRestrictAWatch(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.forTenant("a")
		f.put("mine", of("a"))
		f.put("hidden", of("a"))
		f.put("theirs", of("b"))
		all := f.watch(c, "")
		widened := f.watch(c, "labelSelector=tenant+in+(a,b)&fieldSelector=metadata.name=theirs")
		own := f.watch(c, "labelSelector=tier=front")
		all.want("ADDED mine")

		f.put("theirs", of("b"))
		f.put("front", map[string]string{"tenant": "a", "tier": "front"})
		f.put("mine", of("b"))   // leaves the tenant
		f.put("theirs", of("a")) // enters the tenant
		all.want("ADDED front", "DELETED mine", "ADDED theirs")
		own.want("ADDED front")
		widened.want("ADDED theirs")
	})
}

func TestEndpointHasADefaultProjection(t *testing.T) {
	labels, err := listwatch.ParseProjection("metadata.labels")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, nil)
	f.endpoint = func(*http.Request) watchserver.Endpoint {
		return watchserver.Endpoint{Source: f.flags, Selection: listwatch.Selection{Projection: labels}}
	}
	f.put("a", of("a"))
	for query, want := range map[string]string{
		"": "metadata.labels", "fields=kind": "kind", "watch=1&timeoutSeconds=1": "metadata.labels",
	} {
		w := httptest.NewRecorder()
		f.WatchServer.Serve(w, httptest.NewRequest(http.MethodGet, "/?"+query, nil), f.endpoint(nil))
		if got := w.Header().Get("Listwatch-Fields"); got != want {
			t.Errorf("%q: got the fields %q, want %q", query, got, want)
		}
		if shows := strings.Contains(w.Body.String(), `"tenant":"a"`); shows != (want == "metadata.labels") {
			t.Errorf("%q: got %s, want %s", query, w.Body, want)
		}
		if strings.Contains(w.Body.String(), "enabled") {
			t.Errorf("%q: got %s, want a part of the object", query, w.Body)
		}
	}
}

func TestDeletedKeepsTheStateOfTheTenant(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.forTenant("a")
		f.put("mine", of("a"))
		w := f.watch(c, "")
		w.want("ADDED mine")
		f.put("mine", map[string]string{"tenant": "b", "secret": "of-b"})
		received, err := w.Receive()
		if err != nil || received.Type != "DELETED" || strings.Contains(string(received.Object), "of-b") {
			t.Errorf("got %s %s, %v; want DELETED with the last state of tenant a", received.Type, received.Object, err)
		}
	})
}

func TestForcedSelectorsRestrictAList(t *testing.T) {
	f := newFixture(t, nil)
	f.forTenant("a")
	for name, tenant := range map[string]string{"hidden": "a", "mine": "a", "mine2": "a", "theirs": "b"} {
		f.put(name, of(tenant))
	}
	for query, want := range map[string]string{
		"":                                   "mine mine2",
		"limit=1":                            "mine",
		"labelSelector=tenant%3Db":           "",
		"labelSelector=tenant":               "mine mine2",
		"fieldSelector=metadata.name=hidden": "",
		"fieldSelector=metadata.name=mine2":  "mine2",
	} {
		r := httptest.NewRequest(http.MethodGet, "/flags?"+query, nil)
		w := httptest.NewRecorder()
		f.WatchServer.Serve(w, r, f.endpoint(r))
		var list struct{ Items []Flag }
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: status %d, %v", query, w.Code, err)
		}
		var names []string
		for _, flag := range list.Items {
			names = append(names, flag.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

func TestUntilEndsAWatch(t *testing.T) {
	forbidden := &listwatch.Error{Code: listwatch.Forbidden, Message: "the trial is over"}
	for _, tt := range []struct {
		name string
		err  error
		want listwatch.Code
	}{{"default", nil, listwatch.Unauthorized}, {"own error", forbidden, listwatch.Forbidden}} {
		t.Run(tt.name, func(t *testing.T) {
			onEachTransport(t, nil, func(f *fixture, c transport.Client) {
				recorder := f.traced()
				until := time.Now().Add(time.Hour)
				f.endpoint = func(*http.Request) watchserver.Endpoint {
					return watchserver.Endpoint{Source: f.flags, Until: until, UntilError: tt.err}
				}
				w := f.watch(c, "timeoutSeconds=7200")
				f.put("a", nil)
				w.want("ADDED a")
				w.wantError(tt.want)
				if late := time.Since(until); late != 0 {
					f.Errorf("the watch ended %v after Until", late)
				}
				if _, err := f.tryWatch(c, ""); !errors.Is(err, tt.want) {
					f.Errorf("a later watch: got %v, want %v", err, tt.want)
				}
				synctest.Wait()
				if got := recorder.lastReason(); got != watchserver.EndRefused {
					f.Errorf("got reason %q, want %q", got, watchserver.EndRefused)
				}
			})
		})
	}
}

func TestUntilRefusesALaterList(t *testing.T) {
	f := newFixture(t, nil)
	w := httptest.NewRecorder()
	f.WatchServer.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil),
		watchserver.Endpoint{Source: f.flags, Until: time.Now()})
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("got %d %s, %v, want 401 with WWW-Authenticate", w.Code, w.Body, w.Header())
	}
}

// The end of the year 9999 is a usual value for "never".
func TestADistantUntilDoesNotEndAWatch(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.endpoint = func(*http.Request) watchserver.Endpoint {
			return watchserver.Endpoint{Source: f.flags, Until: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
		}
		w := f.watch(c, "timeoutSeconds=3600")
		f.put("a", nil)
		w.want("ADDED a")
		w.wantEnd()
	})
}

type slowSource struct{ listwatch.Source }

func (s slowSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	<-time.After(2 * time.Second)
	return s.Source.Watch(ctx, q)
}

func TestUntilIsReportedIfTheSourceIsSlow(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.endpoint = func(*http.Request) watchserver.Endpoint {
			return watchserver.Endpoint{Source: slowSource{f.flags}, Until: time.Now().Add(500 * time.Millisecond)}
		}
		f.watch(c, "").wantError(listwatch.Unauthorized)
	})
}

func TestAnErrorThatWrapsEOFIsSent(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		w := f.watch(c, "")
		f.put("a", nil)
		w.want("ADDED a")
		all := func(watchserver.Watch) bool { return true }
		f.WatchServer.End(all, &listwatch.Error{Code: listwatch.Unauthorized, Err: io.EOF})
		w.wantError(listwatch.Unauthorized)
	})
}

func TestEndEndsMatchingWatches(t *testing.T) {
	byUser := func(s *watchserver.Server) {
		s.Access.Authenticator = func(r *http.Request) (watchserver.User, error) {
			return watchserver.User{Name: r.URL.Query().Get("user")}, nil
		}
	}
	onEachTransport(t, byUser, func(f *fixture, c transport.Client) {
		recorder := f.traced()
		ann, bob, carol := f.watch(c, "user=ann&allowWatchBookmarks=1"), f.watch(c, "user=bob"),
			f.watch(c, "user=carol")
		ann.want("BOOKMARK")
		at := f.put("a", nil).Version()
		for _, w := range []*openWatch{ann, bob, carol} {
			w.want("ADDED a")
		}
		synctest.Wait()
		of := func(user string) func(watchserver.Watch) bool {
			return func(w watchserver.Watch) bool { return w.Client == user }
		}
		maintenance := &listwatch.Error{Code: listwatch.Unavailable, Message: "moved to another server"}
		if n := f.WatchServer.End(of("ann"), maintenance); n != 1 {
			f.Errorf("ended %d watches, want 1", n)
		}
		if v := ann.want("BOOKMARK"); v[0] < at {
			f.Errorf("got a bookmark at %d, want %d or later", v[0], at)
		}
		if e := ann.wantError(listwatch.Unavailable); e.Message != maintenance.Message {
			f.Errorf("got message %q, want %q", e.Message, maintenance.Message)
		}
		synctest.Wait()
		if got := recorder.lastReason(); got != watchserver.EndCanceled {
			f.Errorf("got reason %q, want %q", got, watchserver.EndCanceled)
		}
		if n := f.WatchServer.End(of("bob"), nil); n != 1 {
			f.Errorf("ended %d watches, want 1", n)
		}
		bob.wantEnd()
		synctest.Wait()
		if got := recorder.lastReason(); got != watchserver.EndComplete {
			f.Errorf("got reason %q, want %q", got, watchserver.EndComplete)
		}
		f.put("b", nil)
		carol.want("ADDED b")
		id := f.WatchServer.Watches()[0].ID
		f.WatchServer.End(func(w watchserver.Watch) bool { return w.ID == id }, maintenance)
		carol.wantError(listwatch.Unavailable)
	})
}

func TestEndpointRefusesUsersWithoutRights(t *testing.T) {
	flags := memory.New[Flag]()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"allowed": {nil, http.StatusOK},
		"denied":  {errors.New("not yours"), http.StatusForbidden},
		"another error": {
			&listwatch.Error{Code: listwatch.Unavailable, Message: "ask later"},
			http.StatusServiceUnavailable,
		},
	} {
		for _, query := range []string{"", "?watch=true&timeoutSeconds=1"} {
			var asked string
			server := new(watchserver.Server)
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/flags"+query, nil)
			r = r.WithContext(watchserver.WithUser(r.Context(), watchserver.User{Name: "ada"}))
			server.Serve(w, r, watchserver.Endpoint{
				Source: flags,
				Authorize: func(_ context.Context, u watchserver.User) error {
					asked = u.Name
					return c.err
				},
			})
			if w.Code != c.want || asked != "ada" ||
				c.err != nil && !strings.Contains(w.Body.String(), `"kind":"Status"`) {
				t.Errorf("%s%s: got %d %s for %q, want %d", name, query, w.Code, w.Body, asked, c.want)
			}
		}
	}
}

// The check of the first watch waits for the checks of the others.
func TestSlowRecheckDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var checked sync.WaitGroup
		checked.Add(3)
		f.endpoint = func(*http.Request) watchserver.Endpoint {
			return watchserver.Endpoint{Source: f.flags, Recheck: func(context.Context, watchserver.User) error {
				checked.Done()
				checked.Wait()
				return errors.New("no longer yours")
			}}
		}
		for range 3 {
			f.watch(f.Client("chunked"), "")
		}
		synctest.Wait() // the watches are open
		if n := f.WatchServer.Recheck(); n != 3 {
			t.Errorf("ended %d watches, want 3", n)
		}
	})
}

func TestRecheckEndsOnlyWatchesWithoutRights(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		var mu sync.Mutex
		revoked, denied := map[string]bool{}, map[string]bool{}
		in := func(of map[string]bool, user string) bool {
			mu.Lock()
			defer mu.Unlock()
			return of[user]
		}
		f.wrap = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user := watchserver.User{Name: r.URL.Query().Get("user")}
				again := user
				user.Recheck = func() (watchserver.User, error) {
					if in(revoked, again.Name) {
						return watchserver.User{}, listwatch.Cause{Message: "the token is gone"}
					}
					again.Groups = []string{"rechecked"}
					return again, nil
				}
				next.ServeHTTP(w, r.WithContext(watchserver.WithUser(r.Context(), user)))
			})
		}
		f.endpoint = func(r *http.Request) watchserver.Endpoint {
			e := watchserver.Endpoint{Source: f.flags, Authorize: func(_ context.Context, u watchserver.User) error {
				if in(denied, u.Name) && len(u.Groups) > 0 {
					return errors.New("no longer yours")
				}
				return nil
			}}
			if r.URL.Query().Get("user") == "late" {
				e.Source = slowSource{f.flags}
			}
			return e
		}
		ann, bob, carol := f.watch(c, "user=ann"), f.watch(c, "user=bob&allowWatchBookmarks=1"),
			f.watch(c, "user=carol")
		bob.want("BOOKMARK")
		f.put("a", nil)
		ann.want("ADDED a")
		bob.want("ADDED a")
		if n := f.WatchServer.Recheck(); n != 0 {
			f.Errorf("ended %d watches before anything has changed", n)
		}
		late := make(chan *openWatch, 1)
		go func() { late <- f.watch(c, "user=late") }()
		synctest.Wait() // the watch is opening

		mu.Lock()
		revoked["ann"], denied["bob"], revoked["late"] = true, true, true
		mu.Unlock()
		if n := f.WatchServer.Recheck(); n != 2 {
			f.Errorf("ended %d watches, want 2", n)
		}
		if e := ann.wantError(listwatch.Unauthorized); !strings.Contains(e.Message, "the token is gone") {
			f.Errorf("got %q, want the reason", e.Message)
		}
		bob.want("BOOKMARK")
		bob.wantError(listwatch.Forbidden)
		(<-late).wantError(listwatch.Unauthorized)
		f.put("b", nil)
		carol.want("ADDED a", "ADDED b")
	})
}
