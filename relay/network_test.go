package relay_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A watchCounter counts the open watches of a server.
type watchCounter struct{ open, most atomic.Int64 }

func (c *watchCounter) options() servertest.Options {
	return servertest.Options{Configure: func(s *watchserver.Server) {
		s.Trace = &watchserver.Trace{
			Opened: func(context.Context, watchserver.Watch) {
				open := c.open.Add(1)
				for most := c.most.Load(); open > most && !c.most.CompareAndSwap(most, open); most = c.most.Load() {
				}
			},
			Closed: func(context.Context, watchserver.Watch, watchserver.EndReason, error) { c.open.Add(-1) },
		}
	}}
}

// newRemote returns a Remote for the server of n with the given host. If no transports are
// given, it uses the default transports.
func newRemote(n *servertest.Network, host string, transports ...transport.Client) *client.Remote {
	return &client.Remote{URL: "http://" + host + "/things", Network: n.Transport(), Transports: transports}
}

// relayOver starts a server for s and returns a relay that follows s over the network.
func relayOver(t *testing.T, s listwatch.Source, o relay.Options) (*relay.Relay, *servertest.Network, *watchCounter) {
	t.Helper()
	n, counter := servertest.NewNetwork(t), new(watchCounter)
	n.Start("origin", s, counter.options())
	upstream := newRemote(n, "origin")
	t.Cleanup(func() { upstream.Close() })
	return awaitReady(t, openRelay(t, upstream, o)), n, counter
}

func TestOutageOfARemoteIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var own, upstreamLost atomic.Int64
		n := servertest.NewNetwork(t)
		n.Start("origin", openOrigin(t), servertest.Options{})
		upstream := newRemote(n, "origin")
		upstream.Backoff = listwatch.Backoff{Min: 5 * time.Minute, Max: 10 * time.Minute}
		upstream.Trace = &client.Trace{Lost: func(error, time.Duration) { own.Add(1) }}
		defer upstream.Close()
		r := awaitReady(t, openRelay(t, upstream, relay.Options{CheckInterval: -1, Trace: &relay.Trace{
			UpstreamLost: func(error, time.Duration, bool) { upstreamLost.Add(1) },
		}}))
		time.Sleep(time.Minute)
		n.Kill("origin")
		time.Sleep(time.Hour)
		if err := r.Health().Err; err == nil {
			t.Error("the health has no error")
		}
		if n := own.Load(); n < 6 || n > 24 || n != upstreamLost.Load() {
			t.Errorf("the hooks were called %d and %d times, want the same number, as the Backoff says", n,
				upstreamLost.Load())
		}
	})
}

func TestProbeAdvancesQuietCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		o.put("a", "red")
		r, _, watches := relayOver(t, o, relay.Options{})
		time.Sleep(10 * time.Second)
		for range 3 {
			if _, err := other.Create(t.Context(),
				[]byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		var readers sync.WaitGroup
		for range 50 {
			readers.Go(func() {
				page, err := r.List(t.Context(), listwatch.Query{})
				if err != nil || page.Version < o.db.Version() {
					t.Errorf("List returned version %d, error %v; want version %d", page.Version, err, o.db.Version())
				}
			})
		}
		readers.Wait()
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("the reads took %v, want at most 50 ms", took)
		}
		time.Sleep(10 * time.Second)
		if at := r.Health().Version; at != o.db.Version() {
			t.Errorf("the relay is at version %d, want %d", at, o.db.Version())
		}
		if most := watches.most.Load(); most != 2 {
			t.Errorf("the origin had %d watches at once, want 2: the relay's and a probe", most)
		}
		if open := watches.open.Load(); open != 1 {
			t.Errorf("the origin has %d watches, want 1", open)
		}
	})
}

// While other collections change, a relay probes once for any number of watches with many initial
// events. It lists only to learn the newest version.
func TestManyInitialEventsAwaitAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		for i := range 150 {
			o.put(fmt.Sprint("a", i), "red")
		}
		var lists, watches atomic.Int64
		n := servertest.NewNetwork(t)
		n.Start("origin", o, servertest.Options{Wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch q := r.URL.Query(); {
				case q.Has("watch"):
					watches.Add(1)
				case q.Get("limit") != "1":
					lists.Add(1)
				}
				next.ServeHTTP(w, r)
			})
		}})
		upstream := newRemote(n, "origin")
		defer upstream.Close()
		r := awaitReady(t, openRelay(t, upstream, relay.Options{CheckInterval: -1, ProbeWait: 3 * time.Second}))
		lists.Store(0) // the backfill at the start has listed
		watches.Store(0)
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"x","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		v := o.put("a0", "blue").Version
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"y","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		var readers sync.WaitGroup
		for range 50 {
			readers.Go(func() {
				w := testkit.Watch(t, r, listwatch.Query{Bookmarks: true})
				state := testkit.Read(t, w, 151)
				hasWrite := slices.ContainsFunc(state, func(e listwatch.Event) bool { return e.Object.Version == v })
				if last := state[150]; last.Type != listwatch.Synced || last.Version != o.db.Version() || !hasWrite {
					t.Errorf("the initial events end with %s at version %d, want SYNCED at %d with the write at %d",
						last.Type, last.Version, o.db.Version(), v)
				}
			})
		}
		readers.Wait()
		if lists.Load() != 0 || watches.Load() != 1 {
			t.Errorf("the relay has sent %d lists and %d watches, want none and 1 probe", lists.Load(), watches.Load())
		}
	})
}

// Without bookmarks, the initial events come from the upstream: at first after the wait, and at
// once when probes count as failing.
func TestInitialEventsDoNotWaitForFailingProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		for i := range 150 {
			o.put(fmt.Sprint("a", i), "red")
		}
		const wait = 3 * time.Second
		silent := listwatchtest.New(o) // over the network, its watches send no bookmarks
		r, _, _ := relayOver(t, silent, relay.Options{CheckInterval: -1, ProbeWait: wait})
		for i, most := range []time.Duration{wait + slow, wait + slow, wait + slow, slow, slow} {
			if _, err := other.Create(t.Context(),
				[]byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			state := testkit.Read(t, testkit.Watch(t, r, listwatch.Query{Bookmarks: true}), 151)
			if last := state[150]; last.Type != listwatch.Synced || last.Version != o.db.Version() {
				t.Errorf("watch %d: the initial events end with %s at version %d, want SYNCED at %d", i, last.Type,
					last.Version, o.db.Version())
			}
			if took := time.Since(begin); took > most {
				t.Errorf("watch %d: the initial events took %v, want at most %v", i, took, most)
			}
		}
	})
}

func TestIdleLagIsUpdatedByEachCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		o.put("a", "red")
		r, _, _ := relayOver(t, o, relay.Options{CheckInterval: time.Second})
		for range 240 {
			if _, err := other.Create(t.Context(),
				[]byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 2)
			if s := r.Health(); s.Lag < 0 || s.Lag > 5*time.Second {
				t.Fatalf("the lag is %v, want 0 to 5 s: %+v", s.Lag, s)
			}
		}
	})
}

func TestUpstreamBookmarksAdvanceWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		r, _, _ := relayOver(t, o, relay.Options{})
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAny, InitialEvents: listwatch.InitialEventsNo})
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"x","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if at := w.(listwatch.Poller).Progress().Version; at != o.db.Version() {
			t.Errorf("the watcher is at version %d, want %d", at, o.db.Version())
		}
		if s := r.Health(); s.Lag > time.Minute || s.UpstreamVersion != o.db.Version() {
			t.Errorf("the health is %+v, want a lag of at most a minute and upstream version %d", s, o.db.Version())
		}
	})
}

func TestRestartedOriginIsANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		r, n, _ := relayOver(t, o, relay.Options{})
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAny, InitialEvents: listwatch.InitialEventsNo})
		n.Kill("origin")
		time.Sleep(time.Minute)
		restarted := openOrigin(t)
		restarted.put("b", "red")
		n.Start("origin", restarted, servertest.Options{})
		if _, err := readToEnd(t, w); !errors.Is(err, listwatch.Expired) {
			t.Errorf("the watcher got error %v, want Expired", err)
		}
		if page := mustList(t, r, listwatch.Query{}); len(page.Items) != 1 || page.Items[0].Key.Name != "b" {
			t.Errorf("the state is %v, want the state of the new origin", page.Items)
		}
		if got, want := r.Describe().Epoch, restarted.db.Epoch(); got != want {
			t.Errorf("the epoch is %q, want %q, the epoch of the new origin", got, want)
		}
	})
}
