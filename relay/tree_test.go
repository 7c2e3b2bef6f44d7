package relay_test

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
)

// watcherCount returns the number of watchers of the tree. It is lower with the race
// detector, which makes each watcher much slower.
func watcherCount() int {
	if testing.Short() || racetest.Enabled {
		return 300
	}
	return 3000
}

func TestRelayTreeSurvivesKilledRelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, writes = 4, 6
		tree := startTree(t)
		defer tree.close()
		tree.startWatchers(watcherCount())
		for round := range rounds {
			for range writes / 2 {
				tree.write()
			}
			name := relayNames[round%len(relayNames)]
			tree.kill(name)
			for range writes / 2 {
				tree.write()
			}
			tree.start(name)
		}
		tree.finish()
		if most := tree.watches.most.Load(); most != 3 {
			t.Errorf("the origin had up to %d watches at once, want 3", most)
		}
		if open := tree.watches.open.Load(); open != 3 {
			t.Errorf("the origin has %d watches, want 3", open)
		}
		if resumed := tree.resumed.Load(); resumed < int64(watcherCount()) {
			t.Errorf("the watchers resumed %d times, want at least %d", resumed, watcherCount())
		}
	})
}

var relayNames = []string{"relay0", "relay1", "relay2"}

// A tree consists of an origin, relays of the origin, and watchers of the relays.
type tree struct {
	*testing.T
	*servertest.Network
	origin  *origin
	watches watchCounter // the watches of the origin
	relays  map[string]*treeRelay
	copies  string // the directory of the copies of relays
	writes  int
	ctx     context.Context
	clients []*h2.Client // each client is shared by many watchers

	// last is the version at which the watchers stop. It is zero until that version is
	// written.
	last     atomic.Uint64
	watchers sync.WaitGroup
	resumed  atomic.Int64
	failed   atomic.Int64
}

type treeRelay struct {
	*relay.Relay
	upstream *client.Remote
}

func startTree(t *testing.T) *tree {
	t.Helper()
	tr := &tree{
		T: t, copies: t.TempDir(), Network: servertest.NewNetwork(t), origin: openOrigin(t),
		relays: make(map[string]*treeRelay), ctx: t.Context(),
	}
	tr.Start("origin", tr.origin, tr.watches.options())
	tr.SetAlias("any", relayNames...)
	for _, name := range relayNames {
		tr.start(name)
	}
	return tr
}

// start starts a relay, which has no history at first.
func (t *tree) start(name string) {
	upstream := newRemote(t.Network, "origin")
	options := relay.Options{Fields: []string{"spec.color"}}
	if name != relayNames[0] {
		options.Persist = persist.File{Path: filepath.Join(t.copies, name), Interval: time.Second}
	}
	r := &treeRelay{relay.Open(upstream, options), upstream}
	t.relays[name] = r
	t.Start(name, r, servertest.Options{ConfigureHTTP: func(s *http.Server) {
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1000}
	}})
}

func (t *tree) kill(name string) {
	t.Kill(name)
	t.relays[name].Close()
	t.relays[name].upstream.Close()
}

// startWatchers starts watchers. Half of them are spread over the relays, and each stays with its
// relay. The other half may use any relay that is running. In each half, every second watcher
// uses HTTP/2 and shares connections.
func (t *tree) startWatchers(count int) {
	t.Helper()
	var ready sync.WaitGroup
	for i := range count {
		host := "any"
		if i%2 == 0 {
			host = relayNames[i/2%len(relayNames)]
		}
		var carrier transport.Client = &chunked.Client{Network: t.Transport()}
		if i%4 < 2 {
			if i%100 < 2 {
				t.clients = append(t.clients, &h2.Client{Network: t.Transport()})
			}
			carrier = t.clients[len(t.clients)-1]
		}
		remote := newRemote(t.Network, host, carrier)
		remote.Trace = &client.Trace{Opened: func(_ string, from listwatch.Version) {
			if from != 0 {
				t.resumed.Add(1)
			}
		}}
		ready.Add(1)
		t.watchers.Go(func() { t.follow(remote, ready.Done) })
	}
	ready.Wait()
}

// follow reads a watch up to the last write and checks that the watch has every write once.
func (t *tree) follow(remote *client.Remote, ready func()) {
	defer remote.Close()
	w, err := remote.Watch(t.ctx, listwatch.Query{Start: listwatch.StartAny, Bookmarks: true})
	ready()
	if err != nil {
		t.Errorf("Watch: %v", err)
		return
	}
	defer w.Close()
	seen := 0
	for e, err := range listwatch.All(t.ctx, w) {
		if err != nil {
			t.fail("a watcher of %s failed after %d events: %v", remote.URL, seen, err)
			return
		}
		if e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
			if want := t.origin.versionOf(seen); e.Version != want {
				t.fail("event %d of a watcher of %s has version %d, want %d", seen, remote.URL, e.Version, want)
				return
			}
			seen++
		}
		if last := t.last.Load(); last != 0 && e.Version >= listwatch.Version(last) {
			return
		}
	}
}

// fail fails the test. It reports only the first failures.
func (t *tree) fail(format string, args ...any) {
	if t.failed.Add(1) < 10 {
		t.Errorf(format, args...)
	}
}

// write changes an object and waits a short time.
func (t *tree) write() {
	i := t.writes
	t.writes++
	t.origin.put(string(rune('a'+i%5)), []string{"red", "green", "blue"}[i%3])
	<-time.After(300 * time.Millisecond)
}

// versionOf returns the version of write number i. Nothing else may be written to the
// database.
func (o *origin) versionOf(i int) listwatch.Version { return o.start + listwatch.Version(i) + 1 }

// finish waits until all watchers have received the last write.
func (t *tree) finish() {
	<-time.After(time.Minute) // disconnected watchers reconnect in this time
	t.last.Store(uint64(t.origin.put("last", "red").Version))
	t.watchers.Wait()
	if n := t.failed.Load(); n > 0 {
		t.Errorf("%d watchers failed", n)
	}
}

func (t *tree) close() {
	for name := range t.relays {
		t.kill(name)
	}
	t.Kill("origin")
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}
