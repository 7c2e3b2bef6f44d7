package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
)

const agentTTL = 30 * time.Second

var agentSpec = store.CollectionSpec{Kind: "Agent", TTL: func([]byte) time.Duration { return agentTTL }}

// An unreliableStore performs no request while down is true. If forgets is true, it performs a
// create and reports that it failed. A renewal that is lost waits until its context ends.
type unreliableStore struct {
	*store.Collection
	down, forgets atomic.Bool
	lost          atomic.Int32 // the number of renewals to come that get no response
}

func unavailable() error {
	return &listwatch.Error{Code: listwatch.Unavailable, Message: "no response"}
}

func (u *unreliableStore) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	if u.down.Load() {
		return nil, unavailable()
	}
	o, err := u.Collection.Create(ctx, data)
	if u.forgets.CompareAndSwap(true, false) {
		return nil, unavailable()
	}
	return o, err
}

func (u *unreliableStore) Patch(
	ctx context.Context, key listwatch.Key, p listwatch.Patch,
) (*listwatch.Object, error) {
	if u.down.Load() {
		return nil, unavailable()
	}
	if u.lost.Add(-1) >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return u.Collection.Patch(ctx, key, p)
}

// A presenceTest runs Presences of the object "a", and records the events of its collection.
type presenceTest struct {
	*testing.T
	store  *unreliableStore
	events *eventLog
}

// An eventLog holds what happened, one line each.
type eventLog struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (l *eventLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// want compares the lines so far, and forgets them.
func (l *eventLog) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.lines = nil
}

func testPresence(t *testing.T, test func(p presenceTest)) {
	synctest.Test(t, func(t *testing.T) {
		agents := testkit.Must(memory.Open(memory.Options{}).Collection(agentSpec))(t)
		p := presenceTest{t, &unreliableStore{Collection: agents}, record(t, agents, listwatch.Query{})}
		test(p)
	})
}

// record logs the types and names of the events of a watch of s.
func record(t *testing.T, s listwatch.Source, q listwatch.Query) *eventLog {
	t.Helper()
	w := testkit.Must(s.Watch(t.Context(), q))(t)
	t.Cleanup(func() { _ = w.Close() })
	log := new(eventLog)
	go func() {
		for events := make([]listwatch.Event, 16); ; {
			n, err := w.Next(t.Context(), events)
			if err != nil {
				return // the test has ended
			}
			for _, e := range events[:n] {
				if e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
					log.add(fmt.Sprint(e.Type, " ", e.Object.Key))
				}
			}
		}
	}()
	return log
}

// run starts a Presence. Its loss and its end are added to the events.
func (p presenceTest) run(name string) (stop func()) {
	ctx, cancel := context.WithCancel(p.Context())
	presence := controller.Presence{
		Store: p.store, Object: []byte(`{"metadata": {"name": "a", "annotations": {"x": "y"}}, "by": "` + name + `"}`),
		Lost: func(error) { p.events.add(name + " lost") },
	}
	go func() {
		err := presence.Run(ctx)
		if !errors.Is(err, context.Canceled) {
			p.events.add(fmt.Sprint(name, " ", listwatch.CodeOf(err)))
		}
	}()
	return cancel
}

// want compares the events so far, and forgets them.
func (p presenceTest) want(after time.Duration, want ...string) {
	p.Helper()
	<-time.After(after)
	p.events.want(p.T, want...)
}

func TestPresenceLastsAsLongAsItsProcess(t *testing.T) {
	testPresence(t, func(p presenceTest) {
		stop := p.run("first")
		p.want(time.Hour, "ADDED a")
		stop()
		p.want(0, "DELETED a")
	})
}

func TestPresenceEndsWithoutRenewals(t *testing.T) {
	testPresence(t, func(p presenceTest) {
		stop := p.run("first")
		p.want(time.Minute, "ADDED a")
		p.store.down.Store(true) // the network breaks
		p.want(agentTTL+time.Second, "DELETED a")
		p.want(time.Hour)
		p.store.down.Store(false)
		p.want(time.Minute, "first lost", "ADDED a")
		stop()
		p.want(0, "DELETED a")
	})
}

// Packets can be lost without an error, so a renewal waits for less than an interval.
func TestPresenceSurvivesTwoLostRenewals(t *testing.T) {
	testPresence(t, func(p presenceTest) {
		stop := p.run("first")
		p.want(time.Minute, "ADDED a")
		for range 20 {
			p.store.lost.Store(2)
			p.want(2 * time.Minute)
		}
		stop()
		p.want(0, "DELETED a")
	})
}

// An earlier process with the same name may have died just before, or may still run. It must not
// renew or delete the object of its successor.
func TestPresenceReplacesAnEarlierOne(t *testing.T) {
	testPresence(t, func(p presenceTest) {
		p.run("first")
		p.want(time.Minute, "ADDED a")
		stop := p.run("second")
		p.want(time.Minute, "DELETED a", "ADDED a", "first conflict")
		p.want(time.Hour)
		stop()
		p.want(0, "DELETED a")
	})
}

func TestPresenceThatWasReplacedWhileAwayEnds(t *testing.T) {
	testPresence(t, func(p presenceTest) {
		p.run("first")
		p.want(time.Minute, "ADDED a")
		p.store.down.Store(true)
		p.want(time.Minute, "DELETED a")
		create := testkit.Must(p.store.Collection.Create(p.Context(), []byte(`{"metadata":{"name":"a"}}`)))
		create(p.T)
		p.store.down.Store(false)
		p.want(10*time.Second, "ADDED a", "first conflict")
	})
}

func TestPresenceRecognizesItsObject(t *testing.T) {
	testPresence(t, func(p presenceTest) {
		p.store.forgets.Store(true)
		stop := p.run("first")
		p.want(time.Hour, "ADDED a")
		stop()
		p.want(0, "DELETED a")
	})
}

// While the process could not reach the server, its object has ended and its token has expired.
func TestPresenceReturnsWithFreshCredentials(t *testing.T) {
	testPresence(t, func(p presenceTest) {
		var refused atomic.Int32 // the number of creates to come that are refused
		var minimal atomic.Int32 // the number of responses without an object
		h := &crudserver.Handler{Path: "/agents", Collection: p.store.Collection}
		server := testhttp.Start(p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && refused.Add(-1) >= 0 {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
			if w.Header().Get("Preference-Applied") != "" {
				minimal.Add(1)
			}
		}), testhttp.Options{})
		var refreshed atomic.Int32
		remote := &client.Remote{
			URL: server.URL("/agents"), Network: transport.Network{Dial: server.Dial},
			Header: func(_ context.Context, refresh bool) (http.Header, error) {
				if refresh {
					refreshed.Add(1)
				}
				return nil, nil
			},
		}
		defer remote.Close()
		go func() {
			err := controller.Presence{
				Store: remote, Object: []byte(`{"metadata":{"name":"a"}}`),
				Lost: func(error) { p.events.add("lost") },
			}.Run(p.Context())
			p.events.add(fmt.Sprint("ended: ", listwatch.CodeOf(err)))
		}()
		p.want(time.Minute, "ADDED a")
		if minimal.Load() < 5 {
			p.Errorf("%d renewals got no object, want all of them", minimal.Load())
		}
		lose := func(refusals int32) {
			refused.Store(refusals)
			key := listwatch.Key{Name: "a"}
			testkit.Must(p.store.Collection.Delete(p.Context(), key, listwatch.Preconditions{}))(p.T)
		}
		lose(1)
		p.want(time.Minute, "DELETED a", "lost", "ADDED a")
		if refreshed.Load() != 1 {
			p.Errorf("the credentials were refreshed %d times, want once", refreshed.Load())
		}
		lose(2) // the fresh credentials are refused, too
		p.want(time.Minute, "DELETED a", "lost", "ended: "+listwatch.Unauthorized.Error())
	})
}

func TestPresenceReportsWhatARetryCannotRepair(t *testing.T) {
	flags := testkit.Must(memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Flag"}))(t)
	for name, c := range map[string]struct {
		store  listwatch.Store
		object string
		want   listwatch.Code
	}{
		"no JSON":       {flags, "a", listwatch.Invalid},
		"no name":       {flags, `{"metadata":{}}`, listwatch.Invalid},
		"refused":       {flags, `{"metadata":{"name":"A b"}}`, listwatch.Invalid},
		"not a Patcher": {struct{ listwatch.Store }{flags}, `{"metadata":{"name":"a"}}`, listwatch.Unsupported},
	} {
		err := controller.Presence{Store: c.store, Object: []byte(c.object)}.Run(t.Context())
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want code %v", name, err, c.want)
		}
	}
}
