package kubetest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/collector"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// An api serves the resources that exist at present.
type api struct {
	// Immutable after construction.
	options   Options
	faults    *Faults
	collector *collector.Collector
	db        *memory.DB
	notices   *notices

	handler atomic.Pointer[kubeapi.Handler]

	mu sync.Mutex
	// Guarded by mu.
	served   []collector.Resource
	backends map[string]*backend // by qualified name; also of resources that no longer exist
	retired  []*kubeapi.Handler  // earlier handlers; their watches may be open
	defined  map[string][]byte   // the specs of the definitions
	refused  map[string]error    // the reasons why definitions are not served
}

func newAPI(o Options, f *Faults, n *notices) *api {
	a := &api{
		options: o, faults: f, db: memory.Open(memory.Options{}), notices: n, backends: map[string]*backend{},
		defined: map[string][]byte{}, refused: map[string]error{},
	}
	a.collector = &collector.Collector{
		Resources: a, Owners: !o.NoGarbageCollection, Namespaces: !o.NoNamespaceDeletion,
	}
	a.collector.Start()
	return a
}

// add adds or replaces the resource that d declares, without serving it yet. written, which may be
// nil, is called after each write with the object, or with its last state if deleted is true.
func (a *api) add(d rules.Declaration, written func(o *listwatch.Object, deleted bool)) error {
	r := d.Resource
	a.mu.Lock()
	defer a.mu.Unlock()
	spec := r.CollectionSpec()
	if !r.Custom {
		spec.Generation = rules.Generation(r)
	}
	spec.Admit = rules.InNamespace(r, func() *store.Collection { return a.named("namespaces").Collection }, d.Admit)
	name := spec.QualifiedName()
	b := a.backends[name]
	if b != nil && b.retired {
		b = newBackend(b.Backend, a.faults)
		b.finalizers = !a.options.NoFinalizers
		a.backends[name] = b
	}
	if b == nil {
		c, err := a.db.Collection(spec)
		if err != nil {
			return err
		}
		b = newBackend(c.Backend(), a.faults)
		b.finalizers = !a.options.NoFinalizers || name == "namespaces"
		a.backends[name] = b
	}
	b.written = func(o *listwatch.Object, deleted bool) {
		if written != nil {
			written(o, deleted)
		}
		a.collector.Changed(name, o.Key)
	}
	a.served = slices.DeleteFunc(a.served, func(s collector.Resource) bool { return s.QualifiedName() == name })
	a.served = append(a.served, collector.Resource{
		Resource: r, Collection: store.New(spec, b), Source: b.Backend, Versions: d.Versions,
	})
	return nil
}

// remove stops serving the resource with the given qualified name.
func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.served = slices.DeleteFunc(a.served, func(s collector.Resource) bool { return s.QualifiedName() == name })
}

// retire ends the watches of a resource that was removed.
func (a *api) retire(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.backends[name].retire()
}

// backend returns the backend of the resource with the given qualified name.
func (a *api) backend(name string) *backend {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.backends[name]
}

// rebuild makes the handler serve all resources.
func (a *api) rebuild() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &kubeapi.Handler{Collected: true}
	for _, s := range a.served {
		if err := h.Add(s.Resource, s.Collection); err != nil {
			return err
		}
	}
	if before := a.handler.Swap(h); before != nil {
		a.retired = append(a.retired, before)
	}
	return nil
}

// Find implements [collector.Resources].
func (a *api) Find(is func(collector.Resource) bool) (collector.Resource, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.served, is); i >= 0 {
		return a.served[i], true
	}
	return collector.Resource{}, false
}

// All implements [collector.Resources].
func (a *api) All() []collector.Resource {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.served)
}

// named returns the resource with the given qualified name. If there is none, the result has no
// Collection.
func (a *api) named(name string) collector.Resource {
	r, _ := a.Find(func(r collector.Resource) bool { return r.QualifiedName() == name })
	return r
}

// ServeHTTP implements [http.Handler].
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.Load().ServeHTTP(w, r) }

// stop ends all watches and the collector.
func (a *api) stop() {
	a.mu.Lock()
	handlers := a.retired
	if h := a.handler.Load(); h != nil {
		handlers = append(handlers, h)
	}
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that Drain does not wait for clients
	for _, h := range handlers {
		_ = h.Drain(ctx)
	}
	a.collector.Stop()
}
