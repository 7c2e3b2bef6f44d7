package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A variant is one way to do a transport: the server's half and the client's.
type variant struct {
	name    string
	on      string // h1, h2 or ws
	server  transport.Server
	dialler func(transport.Network) transport.Client
}

var variants = []variant{
	{"h1", "h1", chunked.Server{}, newH1},
	{"h1-standard", "h1", chunked.Server{DisableTakeover: true}, newH1},
	{"h2", "h2", h2.Server{}, newH2},
	{"ws-gorilla", "ws", &websocket.Server{}, newWS(websocket.Gorilla)},
	{"ws-nhooyr", "ws", &websocket.Server{Backend: websocket.Nhooyr}, newWS(websocket.Nhooyr)},
}

func newH1(n transport.Network) transport.Client { return &chunked.Client{Network: n} }
func newH2(n transport.Network) transport.Client { return &h2.Client{Network: n} }

func newWS(b websocket.Backend) func(transport.Network) transport.Client {
	return func(n transport.Network) transport.Client { return &websocket.Client{Network: n, Backend: b} }
}

// A setup is what a case wants otherwise than usual.
type setup struct {
	timing  watchserver.Timing
	history memory.Options
	tls     bool
	narrow  bool // connections hold few bytes that are not read yet
}

// An env is what a case has: a collection, a server in front of it, and a way to reach it over one transport.
type env struct {
	*testing.T
	variant
	fake  bool // in a bubble, on a network in memory
	setup setup
	*data
	*site
}

// data is a collection and what was written to it.
type data struct {
	db     *memory.DB
	things *store.Collection

	mu sync.Mutex
	// Guarded by mu.
	counter int
	history []write
}

// A write is one change: labels are nil where it was a delete.
type write struct {
	version listwatch.Version
	name    string
	labels  map[string]string
}

// A site is a running server and a client for it.
type site struct {
	url     *url.URL
	network transport.Network
	client  transport.Client
	secure  bool
	handler http.Handler
	drain   func() // ends all watches
}

// thing is the resource whose collection is tested; it is served alone at /things and, as all others, at its path in Kubernetes.
var thing = kubeapi.Resource{
	Group: "conformance.example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Fields: []string{"spec.phase"},
}

// namespace is where things are unless a case says otherwise.
const namespace = "default"

func newEnv(t *testing.T, v variant, with setup, fake bool) *env {
	e := &env{T: t, variant: v, fake: fake, setup: with, data: &data{db: memory.Open(with.history)}}
	var err error
	if e.things, err = e.db.Collection(thing.Declare()); err != nil {
		t.Fatal(err)
	}
	e.site = e.serve()
	return e
}

// servers returns the transports that a server asks in turn; that of HTTP/1.1 claims whatever is left.
func (v variant) servers() []transport.Server {
	by := map[string]transport.Server{"h1": chunked.Server{}, "h2": h2.Server{}, "ws": &websocket.Server{}}
	by[v.on] = v.server
	return []transport.Server{by["ws"], by["h2"], by["h1"]}
}

// serve starts a server over the collection.
func (e *env) serve() *site {
	e.Helper()
	api := &kubeapi.Handler{Server: watchserver.Server{Timing: e.setup.timing, Transports: e.servers()}}
	if err := api.Add(thing, e.things); err != nil {
		e.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("/things", func(w http.ResponseWriter, r *http.Request) {
		api.Server.Serve(w, r, watchserver.Target{Source: e.things})
	})
	s := e.open(mux)
	e.drainsBy(s, api.Drain)
	return s
}

// drainsBy says how the watches of s are ended; what a case leaves open is cut off.
func (e *env) drainsBy(s *site, drain func(context.Context) error) {
	s.drain = func() {
		if err := drain(e.Context()); err != nil {
			e.Error(err)
		}
	}
	e.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = drain(ctx)
	})
}

// open starts an http.Server with h.
func (e *env) open(h http.Handler) *site {
	e.Helper()
	configure := func(srv *http.Server) {
		h2.Configure(srv, transport.Options{})
		if e.setup.narrow {
			srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
				_ = c.(*net.TCPConn).SetWriteBuffer(narrow) // a hint
				return ctx
			}
		}
	}
	at := transporttest.Open(e, transporttest.Config{
		Handler:   func(http.Handler) http.Handler { return h },
		Configure: configure, TLS: e.setup.tls, Sockets: !e.fake,
	})
	s := &site{url: at.URL, network: at.Network, secure: e.setup.tls, handler: h}
	if e.setup.narrow {
		s.network.Dial = dialNarrow
	}
	s.client = s.newClient(e, e.variant)
	return s
}

// narrow is about how many bytes a socket may hold.
const narrow = 64 << 10

func dialNarrow(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		err = c.(*net.TCPConn).SetReadBuffer(narrow)
	}
	return c, err
}

// newClient returns a client of another variant for s.
func (s *site) newClient(e *env, v variant) transport.Client {
	c := v.dialler(s.network)
	if idle, ok := c.(interface{ CloseIdleConnections() }); ok {
		e.Cleanup(idle.CloseIdleConnections)
	}
	return c
}

// replica returns e with another server over the same collection.
func (e *env) replica() *env {
	other := *e
	other.site = e.serve()
	return &other
}

// over returns e with another transport to the same server.
func (e *env) over(v variant) *env {
	other, there := *e, *e.site
	there.client = there.newClient(e, v)
	other.variant, other.site = v, &there
	return &other
}

// put creates or changes the object of a name, or namespace/name, and returns the version of that. labels are pairs.
func (e *env) put(name string, labels ...string) listwatch.Version {
	e.Helper()
	v, err := e.tryPut(name, labels...)
	if err != nil {
		e.Fatalf("put %s: %v", name, err)
	}
	return v
}

func (d *data) tryPut(name string, labels ...string) (listwatch.Version, error) {
	d.mu.Lock()
	d.counter++
	n := d.counter
	d.mu.Unlock()
	key := keyOf(name)
	m := listwatch.Metadata{Name: key.Name, Namespace: key.Namespace, Labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	body, err := json.Marshal(map[string]any{"metadata": m, "spec": map[string]any{"n": n, "phase": m.Labels["phase"]}})
	if err != nil {
		return 0, err
	}
	o, err := d.things.Create(context.Background(), body)
	if errors.Is(err, listwatch.AlreadyExists) {
		o, err = d.things.Replace(context.Background(), key, body)
	}
	if err != nil {
		return 0, err
	}
	return d.wrote(write{o.Version, name, m.Labels}), nil
}

// delete removes the object of a name and returns the version of that.
func (e *env) delete(name string) listwatch.Version {
	e.Helper()
	v, err := e.tryDelete(name)
	if err != nil {
		e.Fatalf("delete %s: %v", name, err)
	}
	return v
}

func (d *data) tryDelete(name string) (listwatch.Version, error) {
	o, err := d.things.Delete(context.Background(), keyOf(name), store.Preconditions{})
	if err != nil {
		return 0, err
	}
	return d.wrote(write{o.Version, name, nil}), nil
}

func (d *data) wrote(w write) listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = append(d.history, w)
	return w.version
}

func keyOf(name string) listwatch.Key {
	if space, name, ok := strings.Cut(name, "/"); ok {
		return listwatch.Key{Namespace: space, Name: name}
	}
	return listwatch.Key{Namespace: namespace, Name: name}
}

// sentinel writes an object that nobody else writes: what a stream gets before it is all that came before.
func (e *env) sentinel(labels ...string) string {
	e.Helper()
	e.mu.Lock()
	name := fmt.Sprintf("sentinel-%d", e.counter)
	e.mu.Unlock()
	e.put(name, labels...)
	return name
}

// compact forgets all history.
func (e *env) compact() { e.db.Compact() }

// A model replays a history. Its writes must have been made one after another.
type model struct {
	history []write
	state   map[string]listwatch.Version
}

// advance makes state what it was at v, which must not be older than before.
func (m *model) advance(v listwatch.Version) {
	for len(m.history) > 0 && m.history[0].version <= v {
		w := m.history[0]
		m.history = m.history[1:]
		if m.state[w.name] = w.version; w.labels == nil {
			delete(m.state, w.name)
		}
	}
}

// stateAt returns the versions of the objects that there were at v.
func (d *data) stateAt(v listwatch.Version) map[string]listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &model{history: d.history, state: map[string]listwatch.Version{}}
	m.advance(v)
	return m.state
}

// patience is how long a case may wait for something that must come.
func (e *env) patience() time.Duration {
	if e.fake {
		return time.Hour
	}
	return 10 * time.Second
}

// target returns the URL of the collection with a query.
func (s *site) target(query string) *url.URL {
	u := *s.url
	u.Path, u.RawQuery = "/things", query
	return &u
}
