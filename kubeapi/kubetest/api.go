package kubetest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/admission"
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
	chain     *admission.Chain
	db        *memory.DB
	authority *authority
	actions   []action

	handler atomic.Pointer[kubeapi.Handler]

	// defining is locked while the resource of a changed definition begins to be served. It is
	// locked before mu.
	defining sync.Mutex

	mu sync.Mutex
	// Guarded by mu.
	seen     map[string]listwatch.Version // the newest known versions of the definitions
	served   []collector.Resource
	names    map[string]collector.Resource // those in served, by qualified name
	versions []servedVersion
	backends map[string]*backend // by qualified name; also of resources that no longer exist
	retired  []*kubeapi.Handler  // earlier handlers; their watches may be open
	defined  map[string][]byte   // the specs of the definitions
	refused  map[string]error    // the reasons why definitions are not served
}

// A servedVersion is a version of a resource that clients can use.
type servedVersion struct {
	kubeapi.Resource
	collection *store.Collection
}

func newAPI(o Options, f *Faults) (*api, error) {
	a := &api{
		options: o, faults: f, db: memory.Open(memory.Options{}), names: map[string]collector.Resource{},
		backends: map[string]*backend{}, defined: map[string][]byte{}, refused: map[string]error{},
		seen: map[string]listwatch.Version{},
	}
	a.authority = &authority{api: a, tokens: map[string]token{}}
	a.actions = newActions(a.authority)
	var err error
	if a.chain, err = newChain(a); err != nil {
		return nil, err
	}
	a.collector = &collector.Collector{
		Resources: a, Owners: !o.NoGarbageCollection, Namespaces: !o.NoNamespaceDeletion,
	}
	a.collector.Start()
	return a, nil
}

// add adds or replaces the resource that d declares, without serving it yet. written, which may be
// nil, is called after each write with the object, or with its last state if deleted is true.
func (a *api) add(d rules.Declaration, written func(o *listwatch.Object, deleted bool)) error {
	d.Deletes.Admit = a.chain.Delete(d.Resource)
	for i := range d.Others {
		d.Others[i].Deletes.Admit = a.chain.Delete(d.Others[i].Resource)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	spec := d.CollectionSpec()
	if !d.Custom {
		spec.Generation = rules.Generation(d.Resource)
	}
	name := spec.QualifiedName()
	_, known := a.backends[name]
	b, err := a.open(spec)
	if err != nil {
		return err
	}
	b.written = func(o *listwatch.Object, deleted bool) {
		if written != nil {
			written(o, deleted)
		}
		a.collector.Changed(name, o.Key)
	}
	stored := store.New(spec, b)
	// view returns the objects in one version.
	view := func(r kubeapi.Resource, own rules.Admit) *store.Collection {
		declared := r.CollectionSpec()
		declared.Generation = spec.Generation
		declared.Admit = a.admitFor(r, own)
		if d.Read == nil {
			return store.New(declared, b)
		}
		return kubeapi.InVersion(stored, declared, d.Read, d.Write)
	}
	if known {
		a.removeLocked(name)
	}
	main := collector.Resource{
		Resource: d.Resource, Collection: view(d.Resource, d.Admit), Source: b.Backend, Versions: d.Versions,
		Track: d.Tracker("kube-controller-manager"),
	}
	a.served = append(a.served, main)
	a.names[name] = main
	if !d.Unserved {
		a.versions = append(a.versions, servedVersion{d.Resource, main.Collection})
	}
	for _, v := range d.Others {
		a.names[v.QualifiedName()] = main // the group can differ
		if v.Served {
			a.versions = append(a.versions, servedVersion{v.Resource, view(v.Resource, v.Admit)})
		}
	}
	return nil
}

// admitFor returns the rules of an Env for the objects of r, which have own rules.
func (a *api) admitFor(r kubeapi.Resource, own rules.Admit) rules.Admit {
	own = withReadableParameters(a.authority, r, a.authority.withoutEscalation(r, own))
	return rules.InNamespace(r, func() *store.Collection { return a.named("namespaces").Collection },
		a.chain.Admit(r, own))
}

// open returns the backend of the collection that spec describes. The caller holds the mutex.
func (a *api) open(spec store.CollectionSpec) (*backend, error) {
	name := spec.QualifiedName()
	b := a.backends[name]
	switch {
	case b == nil:
		c, err := a.db.Collection(spec)
		if err != nil {
			return nil, err
		}
		b = newBackend(c.Backend(), a.faults)
	case b.retired:
		b = newBackend(b.Backend, a.faults)
	default:
		return b, nil
	}
	b.finalizers = !a.options.NoFinalizers || name == "namespaces"
	a.backends[name] = b
	return b, nil
}

// remove stops serving the resource with the given qualified name.
func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeLocked(name)
}

func (a *api) removeLocked(name string) {
	delete(a.names, name)
	a.served = slices.DeleteFunc(a.served, func(s collector.Resource) bool { return s.QualifiedName() == name })
	a.versions = slices.DeleteFunc(a.versions, func(v servedVersion) bool { return v.QualifiedName() == name })
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
	h := &kubeapi.Handler{
		Collected: true, ManagedFields: a.options.ManagedFields, Authorize: a.authority.authorize,
		RulesFor: a.authority.rulesFor,
	}
	before := a.handler.Load()
	for _, v := range a.versions {
		if before != nil && h.AddFrom(before, v.collection) {
			continue
		}
		if err := h.Add(v.Resource, v.collection); err != nil {
			return err
		}
	}
	if a.handler.Store(h); before != nil {
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

// Named implements [collector.Resources].
func (a *api) Named(name string) (r collector.Resource, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, found = a.names[name]
	return r, found
}

// named returns the resource with the given qualified name. If there is none, the result has no
// Collection.
func (a *api) named(name string) collector.Resource {
	r, _ := a.Named(name)
	return r
}

// version returns the served version of a resource with the given apiVersion and kind.
func (a *api) version(apiVersion, kind string) (servedVersion, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.versions {
		if v.APIVersion() == apiVersion && v.Kind == kind {
			return v, true
		}
	}
	return servedVersion{}, false
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
