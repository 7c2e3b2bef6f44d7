package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// An env is what a case has: a collection, a server in front of it, and a way to reach it over one transport.
type env struct {
	T
	way
	target Target
	setup  Setup
	*data
	*site
	log *timeline
}

// data is a collection and what was written to it.
type data struct {
	store Store
	uses  *usage

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
	*Instance
	client transport.Client
}

// namespace is where objects are unless a case says otherwise; see [Site.Namespace] for what a server calls it.
const namespace = "default"

// newEnv opens a collection of the target with a server in front.
func newEnv(t T, target Target, w way, s Setup, log *timeline) *env {
	t.Helper()
	s.ServerTransport = w.server
	e := &env{T: t, way: w, target: target, setup: s, data: &data{uses: new(usage)}, log: log}
	e.site = e.reach(target.Open(t, s))
	e.data.store = e.Store
	return e
}

// again returns an env with a collection of its own.
func (e *env) again() *env {
	e.Helper()
	e.use(UnrelatedCollection)
	other := newEnv(e.T, e.target, e.way, e.setup, e.log)
	other.uses = e.uses
	return other
}

// reach returns s with a client for it.
func (e *env) reach(s *Instance) *site {
	e.Helper()
	e.log.hide(s.Header)
	s.Network = e.log.tap(s.Network)
	return &site{s, e.newClient(s, e.way)}
}

// newClient returns a client of another way for s.
func (e *env) newClient(s *Instance, w way) transport.Client {
	c := w.dialler(s.Network)
	if wrap := e.target.TransportClient; wrap != nil {
		c = wrap(c)
	}
	if idle, ok := c.(interface{ CloseIdleConnections() }); ok {
		e.Cleanup(idle.CloseIdleConnections)
	}
	if e.target.TransportClient != nil {
		return &declining{c, e.T}
	}
	return c
}

// A declining client ends the case where the client under test can't do what that asks of it.
type declining struct {
	transport.Client
	t T
}

// Dial opens a stream.
func (s *declining) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	receiver, err := s.Client.Dial(ctx, r)
	if cannot, ok := errors.AsType[MissingAbility](err); ok {
		s.t.Skipf("%s", cannot)
	}
	return receiver, err
}

// replica returns e with another server over the same collection.
func (e *env) replica() *env {
	e.Helper()
	e.use(Replicas)
	other := *e
	other.site = e.reach(e.Replica())
	return &other
}

// over returns e with another way to the same server.
func (e *env) over(w way) *env {
	other := *e
	other.way, other.site = w, &site{e.Instance, e.newClient(e.Instance, w)}
	return &other
}

// others returns the ways to reach the target that are not e's.
func (e *env) others() []way {
	var others []way
	for _, w := range (Case{Transports: all}).waysOf(e.target) {
		if w.name != e.way.name {
			others = append(others, w)
		}
	}
	return others
}

// put creates or changes the object of a name, or namespace/name, and returns the version of that. labels are pairs; that of "phase" is a
// field, spec.phase, too.
func (e *env) put(name string, labels ...string) listwatch.Version {
	e.Helper()
	v, err := e.tryPut(name, labels...)
	if err != nil {
		e.Fatalf("put %s: %v", name, err)
	}
	e.log.notef("put %s %v: version %d", name, labels, v)
	return v
}

func (d *data) tryPut(name string, labels ...string) (listwatch.Version, error) {
	set := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		set[labels[i]] = labels[i+1]
	}
	return d.tryPutSpec(name, set, map[string]any{"phase": set["phase"]})
}

// tryPutSpec is tryPut with a spec, to which it adds a number that makes every write a change.
func (d *data) tryPutSpec(name string, labels map[string]string, spec map[string]any) (listwatch.Version, error) {
	d.use(Writes)
	d.mu.Lock()
	d.counter++
	spec["n"] = d.counter
	d.mu.Unlock()
	key := keyOf(name)
	m := listwatch.Metadata{Name: key.Name, Namespace: key.Namespace, Labels: labels}
	body, err := json.Marshal(map[string]any{"metadata": m, "spec": spec})
	if err != nil {
		return 0, err
	}
	v, err := d.store.Put(context.Background(), key, body)
	if err != nil {
		return 0, err
	}
	return d.wrote(write{v, name, labels}), nil
}

// delete removes the object of a name and returns the version of that.
func (e *env) delete(name string) listwatch.Version {
	e.Helper()
	v, err := e.tryDelete(name)
	if err != nil {
		e.Fatalf("delete %s: %v", name, err)
	}
	e.log.notef("delete %s: version %d", name, v)
	return v
}

func (d *data) tryDelete(name string) (listwatch.Version, error) {
	d.use(Writes)
	v, err := d.store.Delete(context.Background(), keyOf(name))
	if err != nil {
		return 0, err
	}
	return d.wrote(write{v, name, nil}), nil
}

func (d *data) wrote(w write) listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = append(d.history, w)
	return w.version
}

// newest returns the version of the last write.
func (d *data) newest() listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.history) == 0 {
		return 0
	}
	return d.history[len(d.history)-1].version
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
func (e *env) compact() {
	e.Helper()
	e.use(Compacts)
	if err := e.Compact(e.Context()); err != nil {
		e.Fatalf("compact: %v", err)
	}
	e.log.notef("compacted")
}

// drain ends all watches.
func (e *env) drain() {
	e.Helper()
	e.use(Drains)
	if err := e.Drain(e.Context()); err != nil {
		e.Errorf("drain: %v", err)
	}
}

// patience is how long a case may wait for something that must come.
func (e *env) patience() time.Duration {
	if e.setup.FakeTime {
		return time.Hour
	}
	if e.target.Patience > 0 {
		return e.target.Patience
	}
	return 10 * time.Second
}

// can reports whether the target has an ability that the case can do without.
func (e *env) can(a Ability) bool { return e.target.Abilities&a == a }

// random returns a source of numbers, and tells its seed.
func (e *env) random() *rand.Rand {
	seed := e.target.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	e.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A usage is which abilities a case has used.
type usage struct {
	mu   sync.Mutex
	used Ability // guarded by mu
}

func (d *data) use(a Ability) {
	d.uses.mu.Lock()
	defer d.uses.mu.Unlock()
	d.uses.used |= a
}
