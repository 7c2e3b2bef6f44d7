// Package reference provides the server that the conformance cases are developed against: a
// watchserver over a store in memory or over another [Database]. Mutants change its parts with
// [Interceptors].
package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/certs"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// Interceptors wrap the parts of the reference server and of its clients. Mutants use them to break
// a rule. Nil functions change nothing.
type Interceptors struct {
	// Spec changes the declaration of the collection.
	Spec func(*store.CollectionSpec)
	// Source wraps the store that the server reads, and Union the union of the collection and a
	// second one.
	Source, Union func(listwatch.Source) listwatch.Source
	// Transport wraps the transport under test.
	Transport func(transport.Server) transport.Server
	// Handler wraps the HTTP handler.
	Handler func(http.Handler) http.Handler
	// TLS changes the TLS configuration of the server. HTTP changes the http.Server.
	TLS  func(*tls.Config)
	HTTP func(*http.Server)
	// Network wraps the network between the clients and the server.
	Network func(transport.Network) transport.Network
	// TransportClient, Client and Informer are copied to the fields of the Target that have the
	// same names.
	TransportClient func(transport.Client) transport.Client
	Client          func(*client.Remote) listwatch.Source
	Informer        func(listwatch.Source) harness.Cache
}

// A Database creates collections. Each case opens a new Database, which is empty at first.
type Database interface {
	// Collection creates the collection that r describes.
	Collection(r store.CollectionSpec) (*store.Collection, error)
	// Compact discards the history up to the current version.
	Compact()
}

// New returns the reference server over a store in memory, with the given interceptors.
func New(name string, w Interceptors) harness.Target {
	return NewWithDatabase(name, func(_ harness.T, s harness.Setup) Database {
		return memory.Open(memory.Options{History: listwatch.Retention{Bytes: s.HistoryBytes}})
	}, w)
}

// NewWithDatabase is like [New], but calls open for the Database of each case. open must limit the
// history of collections to Setup.HistoryBytes, which has the meaning of Bytes in
// [listwatch.Retention], and must fail t if it cannot create a Database.
func NewWithDatabase(name string, open func(t harness.T, s harness.Setup) Database, w Interceptors) harness.Target {
	return newTarget(name, ^harness.Ability(0), w, func(t harness.T, s harness.Setup) collection {
		t.Helper()
		db := open(t, s)
		spec := thingSpec
		if s.TTL > 0 {
			spec.TTL = func([]byte) time.Duration { return s.TTL }
		}
		if w.Spec != nil {
			w.Spec(&spec)
		}
		things, err := db.Collection(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := listwatch.As[store.Renewer](things.Backend()); s.TTL > 0 && !ok {
			t.Skipf("the backend %T is no store.Renewer", things.Backend())
		}
		second, err := db.Collection(secondSpec)
		if err != nil {
			t.Fatal(err)
		}
		return collection{source: things, store: storeOf{things}, objects: things, second: second, compact: db.Compact}
	})
}

// A ReadOnly is a Source over data that other programs write, such as a table of a database.
type ReadOnly struct {
	// Source is the collection, which is empty at first. Its objects have namespaces, and field
	// selectors may name spec.phase.
	Source listwatch.Source
	// Write changes the data under the Source, and returns the version of the change. data is the
	// JSON of the object after the change, without a version. If data is nil, Write deletes the
	// object. Write need not wait until the Source shows the change. It must be safe for concurrent
	// use.
	Write func(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error)
	// Compact drops the history up to the current version.
	Compact func()
}

// An outsideStore writes to a ReadOnly. It waits until the Source shows each change, because some
// cases drain the server or compact the history right after a write.
type outsideStore struct{ ReadOnly }

// Put implements [harness.Store].
func (o outsideStore) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	v, err := o.Write(ctx, key, data)
	if err == nil {
		_, err = o.Source.List(ctx, listwatch.Query{Start: listwatch.StartAt, Version: v, Limit: 1})
	}
	return v, err
}

// Delete implements [harness.Store].
func (o outsideStore) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	return o.Put(ctx, key, nil)
}

// NewReadOnly returns the reference server over collections that other programs write. It calls
// open for a new collection for each case. open must limit the history to Setup.HistoryBytes, and
// must fail t if it cannot open a collection. The server has no paths for single objects, and its
// versions need not be consecutive.
func NewReadOnly(name string, open func(t harness.T, s harness.Setup) ReadOnly, w Interceptors) harness.Target {
	return newTarget(name, ^(harness.KubernetesPaths | harness.ConsecutiveVersions | harness.Expires), w,
		func(t harness.T, s harness.Setup) collection {
			t.Helper()
			r := open(t, s)
			return collection{source: r.Source, store: outsideStore{r}, compact: r.Compact}
		})
}

// patience is the Target.Patience of reference servers. It is long because these servers run in the
// process of the test: a busy machine delays their events, but must not make a case fail.
const patience = time.Minute

func newTarget(
	name string, abilities harness.Ability, w Interceptors, open func(harness.T, harness.Setup) collection,
) harness.Target {
	return harness.Target{
		Name: name, Abilities: abilities, SupportsFakeTime: true, Patience: patience,
		TransportClient: w.TransportClient, Client: w.Client, Informer: w.Informer,
		Open: func(t harness.T, s harness.Setup) *harness.Instance {
			t.Helper()
			o := &referenceServer{T: t, setup: s, wrap: w, things: open(t, s)}
			return o.serve()
		},
	}
}

// A collection contains the source that a reference server serves, and the store with which
// cases write to it.
type collection struct {
	source  listwatch.Source
	store   harness.Store
	objects *store.Collection // nil if the collection is read-only
	second  *store.Collection // in the same database; nil if there is none
	compact func()
}

// A storeOf writes to a [store.Collection].
type storeOf struct{ *store.Collection }

// Put implements [harness.Store]. It tries to update first, because Create parses the whole object
// before it reports that the object exists.
func (s storeOf) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	for {
		object, err := s.Update(ctx, key, listwatch.Preconditions{},
			func(*listwatch.Object) ([]byte, error) { return data, nil })
		if errors.Is(err, listwatch.NotFound) {
			if object, err = s.Create(ctx, data); errors.Is(err, listwatch.AlreadyExists) {
				continue // another writer has created it
			}
		}
		if err != nil {
			return 0, err
		}
		return object.Version, nil
	}
}

// Delete implements [harness.Store].
func (s storeOf) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	object, err := s.Collection.Delete(ctx, key, listwatch.Preconditions{})
	if err != nil {
		return 0, err
	}
	return object.Version, nil
}

// A referenceServer serves one collection for one case.
type referenceServer struct {
	harness.T
	setup  harness.Setup
	wrap   Interceptors
	things collection
}

// transports returns the transports in the order in which the server tries them. HTTP/1.1 is last
// because it accepts every request.
func (r *referenceServer) transports() []transport.Server {
	var h1, second, ws transport.Server = chunked.Server{}, h2.Server{}, &websocket.Server{}
	over := r.setup.ServerTransport
	if wrap := r.wrap.Transport; wrap != nil {
		over = wrap(over)
	}
	if s := r.setup.ServerTransport; s != nil {
		switch s.Name() {
		case h1.Name():
			h1 = over
		case second.Name():
			second = over
		case ws.Name():
			ws = over
		}
	}
	return []transport.Server{ws, second, h1}
}

// serve starts a server over the collection.
func (r *referenceServer) serve() *harness.Instance {
	r.Helper()
	api := &api{source: r.things.source, objects: r.things.objects, access: r.setup.Access, server: watchserver.Server{
		Timing: r.setup.Timing, Limits: r.setup.Limits, Transports: r.transports(),
		NoCompression: r.setup.NoCompression, Access: watchserver.Access{Origins: allowedOrigins(r.setup.Access)},
	}}
	source := r.things.source
	if r.wrap.Source != nil {
		source = r.wrap.Source(source)
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("/things", func(w http.ResponseWriter, request *http.Request) {
		api.server.Serve(w, request, watchserver.Endpoint{Source: source, SharedCompression: r.setup.SharedCompression})
	})
	r.serveUnions(mux, api)
	handler := withCORS(r.setup.Access, mux)
	if r.wrap.Handler != nil {
		handler = r.wrap.Handler(handler)
	}
	s := r.startInstance(handler, source, api.server.Drain)
	s.OpenWatches = func() int { return len(api.server.Watches()) }
	s.Union = r.union(s.URL)
	return s
}

// startInstance starts an HTTP server that calls the given handler until the end of the case. Then
// it calls drain to close the watches that the case has left open.
func (r *referenceServer) startInstance(
	handler http.Handler, source listwatch.Source, drain func(context.Context) error,
) *harness.Instance {
	r.Helper()
	certificates := new(certificateHolder)
	s := harness.StartServer(r.T, r.setup, handler, func(c *tls.Config) {
		certificates.configure(c, r.setup.Access)
		if r.wrap.TLS != nil {
			r.wrap.TLS(c)
		}
	}, r.wrap.HTTP)
	if r.setup.Access.RequireUser {
		// The other path of the collection, /things, requires no credentials.
		s.URL.Path = collectionPath
	}
	s.IssueCertificate = func(user string) tls.Certificate { return certs.Trusted().Issue(certs.ForUser(user)) }
	if r.wrap.Network != nil {
		s.Network = r.wrap.Network(s.Network)
	}
	s.Kind, s.KubernetesPath, s.Store, s.Drain = listwatch.Describe(r.things.source).
		Kind, collectionPath, r.things.store, drain
	s.Compact = func(context.Context) error {
		r.things.compact()
		return nil
	}
	s.Replica, s.TTL = r.serve, r.setup.TTL
	s.Internals = &harness.Internals{Source: source, Handler: handler, RotateCertificate: certificates.renew}
	r.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = drain(ctx)
	})
	return s
}
