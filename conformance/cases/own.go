package cases

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
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

// A Wrap puts something between the parts of [Own]: a mutant does, to break a rule. Nil functions change nothing.
type Interceptors struct {
	// Source stands between the store and the server.
	Source func(listwatch.Source) listwatch.Source
	// Transport stands between the server and the one transport that is tested.
	Transport func(transport.Server) transport.Server
	// Handler stands between the server and its clients.
	Handler func(http.Handler) http.Handler
	// TLS changes what a secure server serves with, and HTTP the server.
	TLS  func(*tls.Config)
	HTTP func(*http.Server)
	// Network stands between the server and its clients, below HTTP.
	Network func(transport.Network) transport.Network
	// Dialler, Client and Informer are those of the Target.
	TransportClient func(transport.Client) transport.Client
	Client          func(*client.Remote) listwatch.Source
	Informer        func(*informer.Informer[*listwatch.Object]) Cache
}

// A Database makes collections. Every one that a case opens is new and empty, and knows nothing of the others.
type Database interface {
	// Collection makes one of a resource.
	Collection(r store.CollectionSpec) (*store.Collection, error)
	// Compact forgets the history so far.
	Compact()
}

// Own returns this module's server over a store in memory, with w in between.
func Own(name string, w Interceptors) Target {
	return Over(name, func(_ T, s Setup) Database { return memory.Open(memory.Options{HistoryBytes: s.HistoryBytes}) }, w)
}

// Over returns this module's server over databases that open makes, with w in between. open fails t or returns one; the history of its
// collections is bounded by Setup.HistoryBytes, as in [memory.Options].
func Over(name string, open func(t T, s Setup) Database, w Interceptors) Target {
	return Target{
		Name: name, Abilities: ^Ability(0), SupportsFakeTime: true, TransportClient: w.TransportClient, Client: w.Client, Informer: w.Informer,
		Open: func(t T, s Setup) *Instance {
			t.Helper()
			return newOwn(t, s, w, open(t, s)).serve()
		},
	}
}

// thing is the resource whose collection is tested; it is served alone at /things and, as all others, at its path in Kubernetes.
var thing = kubeapi.Resource{
	Group: "conformance.example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Fields: []string{"spec.phase"},
}

// own is a collection, and how it is to be served.
type own struct {
	T
	setup  Setup
	wrap   Interceptors
	db     Database
	things *store.Collection
}

func newOwn(t T, s Setup, w Interceptors, db Database) *own {
	t.Helper()
	o := &own{T: t, setup: s, wrap: w, db: db}
	var err error
	if o.things, err = o.db.Collection(thing.CollectionSpec()); err != nil {
		t.Fatal(err)
	}
	return o
}

// Put creates or replaces an object.
func (o *own) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	object, err := o.things.Create(ctx, data)
	if errors.Is(err, listwatch.AlreadyExists) {
		object, err = o.things.Replace(ctx, key, data)
	}
	if err != nil {
		return 0, err
	}
	return object.Version, nil
}

// Delete removes an object.
func (o *own) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	object, err := o.things.Delete(ctx, key, store.Preconditions{})
	if err != nil {
		return 0, err
	}
	return object.Version, nil
}

// transports returns those that the server asks in turn; that of HTTP/1.1 claims whatever is left.
func (o *own) transports() []transport.Server {
	h1, second, ws := transport.Server(chunked.Server{}), transport.Server(h2.Server{}), transport.Server(&websocket.Server{})
	over := o.setup.Access.serverOf(o.setup.ServerTransport)
	if wrap := o.wrap.Transport; wrap != nil {
		over = wrap(over)
	}
	switch o.setup.ServerTransport.(type) {
	case chunked.Server:
		h1 = over
	case h2.Server:
		second = over
	case *websocket.Server:
		ws = over
	}
	return []transport.Server{ws, second, h1}
}

// serve starts a server over the collection.
func (o *own) serve() *Instance {
	o.Helper()
	api := &kubeapi.Handler{Server: watchserver.Server{
		Timing: o.setup.Timing, Limits: o.setup.Limits, Transports: o.transports(), NoCompression: o.setup.NoCompression,
	}}
	if err := errors.Join(api.Add(thing, o.things), o.setup.Access.admit(api)); err != nil {
		o.Fatal(err)
	}
	var source listwatch.Source = o.things
	if o.wrap.Source != nil {
		source = o.wrap.Source(source)
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("/things", func(w http.ResponseWriter, r *http.Request) {
		api.Server.Serve(w, r, watchserver.Endpoint{Source: source})
	})
	handler := o.setup.Access.open(mux)
	if o.wrap.Handler != nil {
		handler = o.wrap.Handler(handler)
	}
	s := o.site(handler, source, api.Drain)
	s.OpenWatches = func() int { return len(api.Server.Watches()) }
	return s
}

// site serves handler; drain ends its watches, and what a case leaves open is cut off.
func (o *own) site(handler http.Handler, source listwatch.Source, drain func(context.Context) error) *Instance {
	o.Helper()
	certificates := new(shelf)
	s := openSite(o.T, o.setup, handler, func(c *tls.Config) {
		certificates.serve(c, o.setup.Access)
		if o.wrap.TLS != nil {
			o.wrap.TLS(c)
		}
	}, o.wrap.HTTP)
	if o.setup.Access.RequireUser {
		s.URL.Path = thing.Path("") // what is at /things alone asks nobody
	}
	s.IssueCertificate = func(user string) tls.Certificate { return ours().issue(identifies(user)) }
	if o.wrap.Network != nil {
		s.Network = o.wrap.Network(s.Network)
	}
	s.Kind, s.KubernetesPath, s.Store, s.Drain = thing.Kind, thing.Path(""), o, drain
	s.Compact = func(context.Context) error {
		o.db.Compact()
		return nil
	}
	s.Replica = o.serve
	s.inside = &inside{source, handler, certificates.renew}
	o.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = drain(ctx)
	})
	return s
}

// openSite starts an http.Server with h, as s wants it and changes make it. Where it is a secure one, secure changes what it serves with.
func openSite(t T, s Setup, h http.Handler, secure func(*tls.Config), changes ...func(*http.Server)) *Instance {
	t.Helper()
	var shutdown func(context.Context) error
	configure := func(srv *http.Server) {
		h2.Configure(srv, transport.Options{})
		shutdown = srv.Shutdown
		srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			if s.SmallBuffers {
				_ = c.(*net.TCPConn).SetWriteBuffer(narrow) // a hint
			}
			return context.WithValue(ctx, connKey{}, c)
		}
		for _, change := range changes {
			if change != nil {
				change(srv)
			}
		}
	}
	at := transporttest.StartServer(t, transporttest.ServerConfig{
		Handler:   func(http.Handler) http.Handler { return h },
		Configure: configure, ServerTLS: secure, TLS: s.TLS, Sockets: !s.FakeTime,
	})
	u := *at.URL
	u.Path, u.RawQuery = "/things", ""
	if s.TLS {
		at.Network.TLS = &tls.Config{RootCAs: ours().pool}
	}
	if s.SmallBuffers {
		at.Network.Dial = dialNarrow
	}
	return &Instance{URL: &u, Network: at.Network, shutdown: shutdown}
}

// connKey is where the context of a request has its net.Conn.
type connKey struct{}

// narrow is about how many bytes a socket may hold.
const narrow = 64 << 10

func dialNarrow(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		err = c.(*net.TCPConn).SetReadBuffer(narrow)
	}
	return c, err
}
