package robustness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/conformance/fault"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A cluster is a store, writers, a server, and watchers behind fault proxies.
type cluster struct {
	// Immutable after construction.
	seed     uint64
	timings  timings
	network  network
	db       *memory.DB
	things   *store.Collection
	recorder *checker.Recorder
	server   *server
	proxies  []*fault.Proxy // guarded by mu

	// targetVersion is the version that all watchers must reach. It is zero until the
	// faults have ended.
	targetVersion atomic.Uint64

	mu       sync.Mutex
	failures []error // unexpected failures; guarded by mu
}

// clusterOptions configures a cluster.
type clusterOptions struct {
	name         string
	seed         uint64
	network      network
	timings      timings
	requirements checker.Requirements
	// historyBytes limits the history that the store keeps. If zero, the store keeps all
	// history until a compaction.
	historyBytes int64
}

func newCluster(s clusterOptions) (*cluster, error) {
	options := memory.Options{History: listwatch.Retention{Age: -1, Bytes: -1, FrameCacheBytes: 16 << 20}}
	if s.historyBytes != 0 {
		options.History = listwatch.Retention{Age: -1, Bytes: s.historyBytes}
	}
	db := memory.Open(options)
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing", Namespaced: true, Fields: []string{"spec.color"}})
	if err != nil {
		return nil, err
	}
	c := &cluster{
		seed: s.seed, timings: s.timings, network: s.network, db: db, things: things,
		server: &server{network: s.network, source: things, timings: s.timings},
	}
	floorKnown := s.historyBytes == 0 // otherwise the store also drops history without a compaction
	c.recorder = checker.NewRecorder(checker.Meta{
		Name: s.name, Seed: s.seed, Base: db.Version(), AllCompactionsRecorded: floorKnown, MustExpire: floorKnown,
		Requirements: s.requirements,
	})
	return c, c.server.start()
}

func (c *cluster) reportFailure(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, err)
}

// random returns the random numbers of one actor. Actors are the watchers, the writers, and the
// goroutine that injects faults.
func (c *cluster) random(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, actor)) }

// sleepRandom sleeps for a random time of at most d. It returns false if ctx ends.
func sleepRandom(ctx context.Context, r *rand.Rand, d time.Duration) bool {
	return reflector.Sleep(ctx, 1+time.Duration(r.Int64N(int64(d))))
}

// waitForRequirements waits for the duration of the run, and then until the history meets the
// requirements of the run, but at most for half of maxOvertime. A run on a slow machine therefore
// takes longer, but does not fail.
func (c *cluster) waitForRequirements(ctx context.Context) {
	for wait, end := c.timings.duration, time.Now().Add(c.timings.duration+
		c.timings.maxOvertime/2); time.Now().Before(end); wait = c.timings.duration / 4 {
		if !reflector.Sleep(ctx, wait) {
			return
		}
		h := c.recorder.History()
		// Check may fail while writes are in progress, because a later write may be recorded
		// before an earlier one. The next iteration checks again.
		r, err := checker.Check(h, nil)
		if err == nil && len(h.Meta.Requirements.Missing(&r.Summary)) == 0 {
			return
		}
	}
}

// heal ends the faults of the connections and makes the newest version the target, which every
// watcher must reach.
func (c *cluster) heal() {
	c.mu.Lock()
	proxies := c.proxies
	c.mu.Unlock()
	for _, p := range proxies {
		p.Heal()
	}
	v := c.db.Version()
	c.recorder.RecordHeal(v)
	c.targetVersion.Store(uint64(v))
}

// startProxy starts a fault proxy for one watcher. The caller must close it.
func (c *cluster) startProxy(name string, actor uint64) (*fault.Proxy, error) {
	l, err := c.network.listen()
	if err != nil {
		return nil, err
	}
	p := &fault.Proxy{
		Listener: l, Dial: c.server.dial,
		Plan: fault.Random(c.seed^actor, fault.RandomOptions{
			Kinds: append(fault.Kinds(), fault.None), MaxBytes: 64 << 10, MaxWait: c.timings.connectionFault,
			MaxDuration: c.timings.connectionFault, ChunkSize: 16, ChunkDelay: c.timings.connectionFault / 50,
		}),
		OnInject: func(b fault.Injection) {
			c.recorder.RecordFault(checker.Fault{Kind: b.Kind.String(), Watcher: name})
		},
	}
	c.mu.Lock()
	c.proxies = append(c.proxies, p)
	c.mu.Unlock()
	go func() { _ = p.Serve() }() // returns when p is closed
	return p, nil
}

// injectServerFaults disturbs the server until ctx ends. Each round kills the server once, drains
// it once, and calls compactRepeatedly twice, in random order.
func (c *cluster) injectServerFaults(ctx context.Context, r *rand.Rand) {
	faults := []func(){
		func() { c.restart(false) }, func() { c.restart(true) }, func() { c.compactRepeatedly(ctx, r) },
		func() { c.compactRepeatedly(ctx, r) },
	}
	for {
		for _, i := range r.Perm(len(faults)) {
			if !sleepRandom(ctx, r, 2*c.timings.faultInterval) {
				return
			}
			faults[i]()
		}
	}
}

func (c *cluster) restart(gracefully bool) {
	kind := "kill"
	if gracefully {
		kind = "drain"
	}
	c.recorder.RecordFault(checker.Fault{Kind: kind, Graceful: gracefully})
	c.server.stop(gracefully)
	if err := c.server.start(); err != nil {
		c.reportFailure(err)
	}
}

// compactRepeatedly compacts the history several times while watchers resume.
func (c *cluster) compactRepeatedly(ctx context.Context, r *rand.Rand) {
	for range 10 {
		c.recorder.RecordCompaction(c.db.Version, c.db.Compact)
		if !sleepRandom(ctx, r, c.timings.faultInterval/5) {
			return
		}
	}
}

// writeRandomly writes objects in bursts until ctx ends. All writers share the same keys.
func (c *cluster) writeRandomly(ctx context.Context, actor uint64) {
	r, things := c.random(actor), c.recorder.Collection(c.things)
	for n := 0; sleepRandom(ctx, r, 2*c.timings.pause); {
		for range 1 + r.IntN(12) {
			n++
			if err := c.writeOne(r, things, fmt.Sprintf("%d-%d", actor, n)); err != nil {
				c.reportFailure(fmt.Errorf("write: %w", err))
				return
			}
		}
	}
}

// writeOne creates, replaces or deletes a random object. It ignores conflicts with other
// writers.
func (c *cluster) writeOne(r *rand.Rand, things *checker.RecordedCollection, mark string) error {
	ctx := context.Background() // without a deadline, so that the outcome of every write is known
	key := listwatch.Key{Namespace: [...]string{"a", "b"}[r.IntN(2)], Name: fmt.Sprintf("n%d", r.IntN(15))}
	data := fmt.Appendf(nil,
		`{"metadata":{"namespace":%q,"name":%q,"labels":{"tier":%q}},"spec":{"color":%q,"mark":%q,"fill":"%0*d"}}`,
		key.Namespace, key.Name, [...]string{"gold", "silver", "iron"}[r.IntN(3)],
		[...]string{"red", "blue"}[r.IntN(2)], mark, r.IntN(800)+1, 0)
	_, err := c.things.Get(ctx, key)
	switch {
	case errors.Is(err, listwatch.NotFound):
		_, err = things.Create(ctx, data)
	case err == nil && r.IntN(5) == 0:
		_, err = things.Delete(ctx, key, listwatch.Preconditions{})
	case err == nil:
		_, err = things.Update(ctx, key, listwatch.Preconditions{},
			func(*listwatch.Object) ([]byte, error) { return data, nil })
	}
	if errors.Is(err, listwatch.AlreadyExists) || errors.Is(err, listwatch.NotFound) {
		return nil
	}
	return err
}
