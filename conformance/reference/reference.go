// Package reference is the server that the conformance cases are developed against: this module's server
// over a store in memory, or over any [Database]. [Interceptors] change its parts, for mutants.
package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/certs"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
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
	Informer        func(*informer.Informer[*listwatch.Object]) harness.Cache
}

// A Database makes collections. Every one that a case opens is new and empty, and knows nothing of the others.
type Database interface {
	// Collection makes one of a resource.
	Collection(r store.CollectionSpec) (*store.Collection, error)
	// Compact forgets the history so far.
	Compact()
}

// New returns this module's server over a store in memory, with w in between.
func New(name string, w Interceptors) harness.Target {
	return NewWithDatabase(name, func(_ harness.T, s harness.Setup) Database {
		return memory.Open(memory.Options{HistoryBytes: s.HistoryBytes})
	}, w)
}

// NewWithDatabase returns this module's server over databases that open makes, with w in between. open fails t or returns one; the history of its
// collections is bounded by Setup.HistoryBytes, as in [memory.Options].
func NewWithDatabase(name string, open func(t harness.T, s harness.Setup) Database, w Interceptors) harness.Target {
	return harness.Target{
		Name: name, Abilities: ^harness.Ability(0), SupportsFakeTime: true, TransportClient: w.TransportClient, Client: w.Client, Informer: w.Informer,
		Open: func(t harness.T, s harness.Setup) *harness.Instance {
			t.Helper()
			return newReferenceServer(t, s, w, open(t, s)).serve()
		},
	}
}

// thing is the resource whose collection is tested; it is served alone at /things and, as all others, at its path in Kubernetes.
var thing = kubeapi.Resource{
	Group: "conformance.example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Fields: []string{"spec.phase"},
}

// referenceServer is a collection, and how it is to be served.
type referenceServer struct {
	harness.T
	setup  harness.Setup
	wrap   Interceptors
	db     Database
	things *store.Collection
}

func newReferenceServer(t harness.T, s harness.Setup, w Interceptors, db Database) *referenceServer {
	t.Helper()
	o := &referenceServer{T: t, setup: s, wrap: w, db: db}
	var err error
	if o.things, err = o.db.Collection(thing.CollectionSpec()); err != nil {
		t.Fatal(err)
	}
	return o
}

// Put creates or replaces an object.
func (o *referenceServer) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
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
func (o *referenceServer) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	object, err := o.things.Delete(ctx, key, store.Preconditions{})
	if err != nil {
		return 0, err
	}
	return object.Version, nil
}

// transports returns those that the server asks in turn; that of HTTP/1.1 claims whatever is left.
func (o *referenceServer) transports() []transport.Server {
	h1, second, ws := transport.Server(chunked.Server{}), transport.Server(h2.Server{}), transport.Server(&websocket.Server{})
	over := serverOf(o.setup.Access, o.setup.ServerTransport)
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
func (o *referenceServer) serve() *harness.Instance {
	o.Helper()
	api := &kubeapi.Handler{Server: watchserver.Server{
		Timing: o.setup.Timing, Limits: o.setup.Limits, Transports: o.transports(), NoCompression: o.setup.NoCompression,
	}}
	if err := errors.Join(api.Add(thing, o.things), admit(o.setup.Access, api)); err != nil {
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
	handler := open(o.setup.Access, mux)
	if o.wrap.Handler != nil {
		handler = o.wrap.Handler(handler)
	}
	s := o.site(handler, source, api.Drain)
	s.OpenWatches = func() int { return len(api.Server.Watches()) }
	return s
}

// site serves handler; drain ends its watches, and what a case leaves open is cut off.
func (o *referenceServer) site(handler http.Handler, source listwatch.Source, drain func(context.Context) error) *harness.Instance {
	o.Helper()
	certificates := new(certificateHolder)
	s := harness.StartServer(o.T, o.setup, handler, func(c *tls.Config) {
		certificates.serve(c, o.setup.Access)
		if o.wrap.TLS != nil {
			o.wrap.TLS(c)
		}
	}, o.wrap.HTTP)
	if o.setup.Access.RequireUser {
		s.URL.Path = thing.Path("") // what is at /things alone asks nobody
	}
	s.IssueCertificate = func(user string) tls.Certificate { return certs.Trusted().Issue(certs.ForUser(user)) }
	if o.wrap.Network != nil {
		s.Network = o.wrap.Network(s.Network)
	}
	s.Kind, s.KubernetesPath, s.Store, s.Drain = thing.Kind, thing.Path(""), o, drain
	s.Compact = func(context.Context) error {
		o.db.Compact()
		return nil
	}
	s.Replica = o.serve
	s.Internals = &harness.Internals{Source: source, Handler: handler, RotateCertificate: certificates.renew}
	o.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = drain(ctx)
	})
	return s
}
