package relay_test

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// A network is hosts by name, in memory. The name "any" stands for one of the hosts that are up and whose name begins with "relay".
type network struct {
	mu    sync.Mutex
	hosts map[string]*host // guarded by mu
}

// A host is a server of one Source.
type host struct {
	server   *watchserver.Server
	http     *http.Server
	listener *memnet.Listener
	done     chan struct{}

	open, most atomic.Int64 // watches
	opened     atomic.Int64

	mu    sync.Mutex
	conns []*memnet.Conn // guarded by mu
}

func newNetwork() *network { return &network{hosts: make(map[string]*host)} }

// serve starts a host.
func (n *network) serve(name string, s listwatch.Source) *host {
	h := &host{listener: memnet.Listen(), done: make(chan struct{})}
	h.server = &watchserver.Server{Source: s, Trace: &watchserver.Trace{
		Opened: func(watchserver.Watch) {
			h.opened.Add(1)
			now := h.open.Add(1)
			for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
			}
		},
		Closed: func(watchserver.Watch, error) { h.open.Add(-1) },
	}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	h.http = &http.Server{
		Handler: h.server, Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
	go func() {
		defer close(h.done)
		_ = h.http.Serve(h.listener) // until kill
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[name] = h
	return h
}

// kill takes a host away as a power cut does: nobody is told anything.
func (n *network) kill(name string) {
	n.mu.Lock()
	h := n.hosts[name]
	delete(n.hosts, name)
	n.mu.Unlock()
	h.listener.Close()
	h.mu.Lock()
	for _, c := range h.conns {
		c.Reset()
	}
	h.mu.Unlock()
	h.http.Close()
	<-h.done
	_ = h.server.Drain(context.Background()) // waits for the watches, which have ended
}

func (n *network) close() {
	for {
		n.mu.Lock()
		name := ""
		for name = range n.hosts {
			break
		}
		n.mu.Unlock()
		if name == "" {
			return
		}
		n.kill(name)
	}
}

func (n *network) find(name string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != "any" {
		return n.hosts[name]
	}
	var up []*host
	for name, h := range n.hosts {
		if name != "origin" {
			up = append(up, h)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[rand.IntN(len(up))]
}

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	h := n.find(name)
	if h == nil {
		return nil, &net.OpError{Op: "dial", Net: "mem", Err: syscall.ECONNREFUSED}
	}
	c, err := h.listener.DialConn(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
	return c, nil
}

// remote returns the Source of a host over transports, or over those that a Remote chooses.
func (n *network) remote(name string, transports ...transport.Client) *client.Remote {
	return &client.Remote{URL: "http://" + name + "/things", Network: transport.Network{Dial: n.dial}, Transports: transports}
}

func TestAQuietCollectionOfABusyDatabaseIsReadFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := collection(t, o.db, "Other")
		o.put("a", "red")
		n := newNetwork()
		defer n.close()
		h := n.serve("origin", o)
		upstream := n.remote("origin")
		defer upstream.Close()
		r := relay.Open(upstream, relay.Options{})
		defer r.Close()
		ready(t, r)
		time.Sleep(10 * time.Second)
		for range 3 {
			if _, err := other.Create(t.Context(), []byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		var readers sync.WaitGroup
		for range 50 {
			readers.Go(func() {
				page, err := r.List(t.Context(), listwatch.Query{})
				if err != nil || page.Version < o.db.Version() {
					t.Errorf("got version %d, %v; want %d", page.Version, err, o.db.Version())
				}
			})
		}
		readers.Wait()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if most := h.most.Load(); most != 2 {
			t.Errorf("the origin saw %d watches at once, want the relay's and one for a moment", most)
		}
		time.Sleep(10 * time.Second)
		if open := h.open.Load(); open != 1 {
			t.Errorf("the origin still sees %d watches", open)
		}
	})
}

func TestHowFarBehindAQuietCollectionIsIsFoundOutAsOftenAsItIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := collection(t, o.db, "Other")
		o.put("a", "red")
		n := newNetwork()
		defer n.close()
		n.serve("origin", o)
		upstream := n.remote("origin")
		defer upstream.Close()
		r := relay.Open(upstream, relay.Options{CheckInterval: time.Second})
		defer r.Close()
		ready(t, r)
		for range 240 {
			if _, err := other.Create(t.Context(), []byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 2)
			if s := r.Health(); s.Lag < 0 || s.Lag > 5*time.Second {
				t.Fatalf("it may be %v behind, and all is well: %+v", s.Lag, s)
			}
		}
	})
}

func TestBookmarksOfTheUpstreamMoveQuietWatchersOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := collection(t, o.db, "Other")
		n := newNetwork()
		defer n.close()
		n.serve("origin", o)
		upstream := n.remote("origin")
		defer upstream.Close()
		r := relay.Open(upstream, relay.Options{})
		defer r.Close()
		w := watch(t, ready(t, r), listwatch.Query{Start: listwatch.Any, InitialEvents: listwatch.No})
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"x","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if at := w.(listwatch.Poller).Position(); at != o.db.Version() {
			t.Errorf("a quiet watcher is at %d, want %d", at, o.db.Version())
		}
		if s := r.Health(); s.Lag > time.Minute || s.UpstreamVersion != o.db.Version() {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnOriginThatStartsAgainIsAnotherEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		defer n.close()
		o := openOrigin(t)
		o.put("a", "red")
		n.serve("origin", o)
		upstream := n.remote("origin")
		defer upstream.Close()
		r := relay.Open(upstream, relay.Options{})
		defer r.Close()
		w := watch(t, ready(t, r), listwatch.Query{Start: listwatch.Any, InitialEvents: listwatch.No})
		n.kill("origin")
		time.Sleep(time.Minute)
		reborn := openOrigin(t)
		reborn.put("b", "red")
		n.serve("origin", reborn)
		if _, err := end(t, w); !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watcher got %v, want Expired", err)
		}
		if page := list(t, r, listwatch.Query{}); len(page.Items) != 1 || page.Items[0].Key.Name != "b" || r.Describe().Epoch != reborn.db.Epoch() {
			t.Errorf("the state is %v, want that of the new origin", page.Items)
		}
	})
}

// treeWatchers is how many watchers the tree has; the race detector makes each several times as dear.
func treeWatchers() int {
	if testing.Short() || raceEnabled {
		return 300
	}
	return 3000
}

func TestATreeOfRelaysDeliversEveryEventExactlyOnceWhileRelaysAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, writes = 4, 6
		tree := growTree(t, 3)
		defer tree.fell()
		tree.watch(treeWatchers())
		for round := range rounds {
			for range writes / 2 {
				tree.write()
			}
			// A relay goes, and writes go on while it is away, and while it comes back.
			name := relayNames[round%len(relayNames)]
			tree.kill(name)
			for range writes / 2 {
				tree.write()
			}
			tree.start(name)
		}
		tree.finish()
		if most := tree.origin.most.Load(); most != 3 {
			t.Errorf("the origin saw up to %d watches at once, want 3", most)
		}
		if open := tree.origin.open.Load(); open != 3 {
			t.Errorf("the origin sees %d watches, want 3", open)
		}
		if resumed := tree.resumed.Load(); resumed < int64(treeWatchers()) {
			t.Errorf("watchers went on %d times only: they were hardly disturbed", resumed)
		}
	})
}

var relayNames = []string{"relay0", "relay1", "relay2"}

// A tree is an origin, relays, and watchers of these.
type tree struct {
	*testing.T
	*network
	things  *origin
	origin  *host
	relays  map[string]*leaf
	written []listwatch.Version
	// last is the version at which watchers have enough; zero: not known yet.
	last     atomic.Uint64
	watchers sync.WaitGroup
	ctx      context.Context
	resumed  atomic.Int64
	faults   atomic.Int64
	shared   []*h2.Client
}

type leaf struct {
	*relay.Relay
	upstream *client.Remote
}

func growTree(t *testing.T, relays int) *tree {
	t.Helper()
	tr := &tree{T: t, network: newNetwork(), things: openOrigin(t), relays: make(map[string]*leaf)}
	tr.ctx = t.Context()
	tr.origin = tr.serve("origin", tr.things)
	for _, name := range relayNames[:relays] {
		tr.start(name)
	}
	return tr
}

// start starts a relay, which knows nothing of an earlier one.
func (tr *tree) start(name string) {
	upstream := tr.remote("origin")
	l := &leaf{relay.Open(upstream, relay.Options{Fields: []string{"spec.color"}}), upstream}
	tr.relays[name] = l
	tr.serve(name, l)
}

func (tr *tree) kill(name string) {
	tr.network.kill(name)
	tr.relays[name].Close()
	tr.relays[name].upstream.Close()
}

// watch opens watchers: half of them stay with one relay, whatever becomes of it, the others take any that is up. Half of each come over
// HTTP/2, many on a connection.
func (tr *tree) watch(count int) {
	tr.Helper()
	var ready sync.WaitGroup
	for i := range count {
		name := "any"
		if i%2 == 0 {
			name = relayNames[i/2%len(relayNames)]
		}
		var carrier transport.Client = &chunked.Client{Network: transport.Network{Dial: tr.dial}}
		if i%4 < 2 {
			if i%100 < 2 {
				tr.shared = append(tr.shared, &h2.Client{Network: transport.Network{Dial: tr.dial}})
			}
			carrier = tr.shared[len(tr.shared)-1]
		}
		remote := tr.remote(name, carrier)
		remote.Trace = &client.Trace{Opened: func(_ string, from listwatch.Version) {
			if from != 0 {
				tr.resumed.Add(1)
			}
		}}
		ready.Add(1)
		tr.watchers.Go(func() { tr.follow(remote, ready.Done) })
	}
	ready.Wait()
}

// follow reads one watcher to the last write, and holds what came against what was written.
func (tr *tree) follow(remote *client.Remote, ready func()) {
	defer remote.Close()
	w, err := remote.Watch(tr.ctx, listwatch.Query{Start: listwatch.Any, Bookmarks: true})
	ready()
	if err != nil {
		tr.Errorf("watch: %v", err)
		return
	}
	defer w.Close()
	seen := 0
	for e, err := range listwatch.All(tr.ctx, w) {
		if err != nil {
			tr.fault("a watcher of %s, after %d events: %v", remote.URL, seen, err)
			return
		}
		if e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
			if want := tr.things.writtenAt(seen); e.Version != want {
				tr.fault("a watcher of %s: event %d is of version %d, want %d", remote.URL, seen, e.Version, want)
				return
			}
			seen++
		}
		if last := tr.last.Load(); last != 0 && e.Version >= listwatch.Version(last) {
			return
		}
	}
}

// fault fails the test, and says so for a few watchers only.
func (tr *tree) fault(format string, args ...any) {
	if tr.faults.Add(1) < 10 {
		tr.Errorf(format, args...)
	}
}

// write makes a change and lets some time go by.
func (tr *tree) write() {
	i := len(tr.written)
	color := []string{"red", "green", "blue"}[i%3]
	name := string(rune('a' + i%5))
	o := tr.things.put(name, color)
	tr.written = append(tr.written, o.Version)
	<-time.After(300 * time.Millisecond)
}

// writtenAt returns the version of write number i, which is the next one: nothing else is written to the database.
func (o *origin) writtenAt(i int) listwatch.Version { return o.start + listwatch.Version(i) + 1 }

// finish waits for all watchers.
func (tr *tree) finish() {
	<-time.After(time.Minute) // whoever was cut off comes back
	tr.last.Store(uint64(tr.things.put("last", "red").Version))
	tr.watchers.Wait()
	if n := tr.faults.Load(); n > 0 {
		tr.Errorf("%d watchers in all", n)
	}
}

func (tr *tree) fell() {
	for name := range tr.relays {
		tr.kill(name)
	}
	tr.network.close()
	for _, c := range tr.shared {
		c.CloseIdleConnections()
	}
}
