package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/workqueue"
)

// A Counter is what the counting controller writes.
type Counter struct {
	listwatch.Metadata `json:"metadata"`
	Count              int `json:"count"`
}

// A site has two servers of one store, and a relay that follows one of them with a delay.
type site struct {
	*testing.T
	lag     *listwatchtest.Source // between the store and the relay
	servers [2]*client.Remote     // to write to
	relay   *client.Remote        // to read from
}

func newSite(t *testing.T) *site {
	collection := store.CollectionOf(memory.New[Counter]())
	s := &site{T: t, lag: listwatchtest.New(collection)}
	reads := &watchserver.Server{Source: s.lag}
	for n := range s.servers {
		writes := &crudserver.Handler{Path: "/counters", Collection: collection}
		s.servers[n] = s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Relay") != "" {
				reads.ServeHTTP(w, r)
				return
			}
			writes.ServeHTTP(w, r)
		}))
	}
	upstream := &client.Remote{
		URL: s.servers[1].URL, Network: s.servers[1].Network,
		Header: func(context.Context, bool) (http.Header, error) { return http.Header{"Relay": {"1"}}, nil },
	}
	r := relay.Open(upstream, relay.Options{Backoff: quick})
	s.relay = s.serve(&watchserver.Server{Source: r})
	t.Cleanup(func() { r.Close(); upstream.Close() })
	return s
}

// quick limits the time for which the informer lags after a fault.
var quick = listwatch.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}

func (s *site) serve(h http.Handler) *client.Remote {
	server := testhttp.Start(s.T, h, testhttp.Options{})
	remote := &client.Remote{URL: server.URL("/counters"), Network: transport.Network{Dial: server.Dial}}
	s.Cleanup(func() { remote.Close() })
	return remote
}

// A counting controller increments each counter, and deletes every seventh. It remembers its last
// write of each key, and the number of times that it has read an older state.
type counting struct {
	*site
	counters *informer.Informer[Counter]
	writes   [2]typed.Collection[Counter] // at both servers
	queue    workqueue.Queue[listwatch.Key]
	finish   func() // called after the last call

	mu                     sync.Mutex
	last                   map[listwatch.Key]int // zero after a delete
	calls, remaining, lost int
}

func (c *counting) reconcile(ctx context.Context, key listwatch.Key) error {
	seen, ok := c.counters.Get(key)
	c.mu.Lock()
	c.calls++
	last := c.last[key]
	if ok && seen.Count != last || !ok && last != 0 {
		c.lost++
	}
	if c.remaining--; c.remaining < 0 {
		c.finish()
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	defer c.queue.Add(key) // the next call does not wait for an event
	now, err := last+1, error(nil)
	server := c.writes[rand.IntN(2)]
	switch {
	case last%7 == 6:
		now = 0
		_, err = server.Delete(ctx, key, 0)
	case last == 0:
		_, err = server.Create(ctx, Counter{Metadata: listwatch.Metadata{Name: key.Name}, Count: now})
	default:
		seen.Count = now
		var data []byte
		if data, err = listwatch.Encode(seen); err == nil {
			_, err = server.Store.Replace(ctx, key, data) // a conflict if seen is old
		}
	}
	if err == nil {
		c.mu.Lock()
		c.last[key] = now
		c.mu.Unlock()
	}
	return err
}

// count runs the controller for the given number of calls. With track, the informer tracks the
// writes.
func count(t *testing.T, calls int, track bool, disturb func(*site)) (c *counting) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newSite(t)
		c = &counting{site: s, finish: cancel, last: map[listwatch.Key]int{}, remaining: calls}
		c.counters = &informer.Informer[Counter]{Source: s.relay, Backoff: quick}
		for n, remote := range s.servers {
			c.writes[n].Store = remote
			if track {
				c.writes[n].Store = c.counters.Track(remote)
			}
		}
		go func() { _ = c.counters.Run(ctx) }()
		s.lag.Delay(3 * time.Millisecond)
		if disturb != nil {
			go func() {
				for {
					select {
					case <-time.After(rand.N(time.Second)):
						disturb(s)
					case <-ctx.Done():
						return
					}
				}
			}()
		}
		for n := range 10 {
			c.queue.Add(keyOf(fmt.Sprint("c", n)))
		}
		err := controller.Reconcile(ctx, c.counters, c.reconcile, controller.Options[Counter]{
			Concurrency: 4, Queue: &c.queue, Called: func(call controller.Call) {
				// While the informer reconnects, calls may be skipped.
				if call.Err != nil && track && !call.Skipped && !errors.Is(call.Err, context.Canceled) {
					t.Errorf("%s: %v", call.Key, call.Err)
				}
			},
		})
		if err != context.Canceled {
			t.Errorf("Reconcile returned %v", err)
		}
		synctest.Wait()
	})
	return c
}

func TestCallsSeeTheirOwnWrites(t *testing.T) {
	calls := racetest.Rounds(10_000)
	if testing.Short() {
		calls = 1000
	}
	c := count(t, calls, true, func(s *site) {
		switch rand.IntN(3) {
		case 0:
			s.lag.Cut(nil)
		case 1:
			s.lag.Delay(rand.N(10 * time.Millisecond))
		case 2:
			if err := s.lag.Expire(); err != nil {
				t.Error(err)
			}
		}
	})
	if c.lost != 0 || c.calls < calls {
		t.Errorf("%d of %d calls have read a state without their own last write", c.lost, c.calls)
	}
}

// The test above proves something only if this one sees old states.
func TestCallsWithoutTrackSeeOldStates(t *testing.T) {
	if c := count(t, 200, false, nil); c.lost == 0 {
		t.Errorf("all of %d calls have seen their own last write, although the relay lags", c.calls)
	}
}

func TestCallIsSkippedUntilItsWritesArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &fixture{T: t, store: memory.New[App](), start: time.Now()}
		source := listwatchtest.New(x.store)
		x.apps = &informer.Informer[App]{Source: source, Backoff: quick}
		writes := typed.Collection[App]{Store: x.apps.Track(x.store.Store)}
		x.put("a", "")
		var queue workqueue.Queue[listwatch.Key]
		stop := x.run(func(ctx context.Context, key listwatch.Key) error {
			app, _ := x.apps.Get(key)
			x.log("%s %s", key, app.Team)
			if app.Team == "" {
				source.Fail(errors.New("the server is down"))
				source.Cut(nil)
				queue.Add(key)
				_, err := writes.Update(ctx, key, func(a *App) error { a.Team = "ada"; return nil })
				return err
			}
			return nil
		}, controller.Options[App]{Queue: &queue, Called: func(c controller.Call) {
			if c.Skipped {
				x.log("skipped after %v: %v", c.Waited, listwatch.CodeOf(c.Err))
			}
		}})
		x.expect("at the start", "a ")
		time.Sleep(15 * time.Second)
		x.expect("while the server is down", "skipped after 10s: not yet")
		source.Fail(nil)
		time.Sleep(time.Minute)
		x.expect("when the server is up: the retry, and the event", "a ada", "a ada")
		_ = stop()
	})
}

func TestCallsAreSkippedWhileTheInformerLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &fixture{T: t, store: memory.New[App](), start: time.Now()}
		source := listwatchtest.New(x.store)
		x.apps = &informer.Informer[App]{Source: source, Backoff: quick, MaxLag: 10 * time.Second}
		x.put("a", "")
		var queue workqueue.Queue[listwatch.Key]
		stop := x.run(func(_ context.Context, key listwatch.Key) error {
			app, _ := x.apps.Get(key)
			x.log("%s %s", key, app.Team)
			return nil
		}, controller.Options[App]{Queue: &queue, Called: func(c controller.Call) {
			if c.Skipped {
				x.log("skipped: %v, again after %v", listwatch.CodeOf(c.Err), c.Retry)
			}
		}})
		x.expect("at the start", "a ")
		source.Fail(errors.New("the server is down"))
		source.Cut(nil)
		time.Sleep(11 * time.Second)
		queue.Add(keyOf("a"))
		x.expect("while the informer lags", "skipped: unavailable, again after 5s")
		source.Fail(nil)
		time.Sleep(6 * time.Second)
		x.expect("when it has caught up", "a ")
		_ = stop()
	})
}
