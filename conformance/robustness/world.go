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

// times are how long things take in a world.
type times struct {
	run       time.Duration // how long there are faults
	patience  time.Duration // how long anything may take at most: it ends a hang, it judges no speed
	pause     time.Duration // about how long writers and watchers rest
	trouble   time.Duration // about how long the server runs between two things that happen to it
	bookmark  time.Duration
	watch     time.Duration // the least that a watch lasts
	heartbeat time.Duration
	write     time.Duration // the write time-out
	idle      time.Duration // the silence after which clients give a stream up
	fault     time.Duration // how soon a connection meets its fault, and how long that lasts
}

// A world is a store, writers, a server, and watchers behind proxies.
type world struct {
	// Immutable once it runs.
	seed    uint64
	times   times
	network network
	db      *memory.DB
	things  *store.Collection
	rec     *checker.Recorder
	server  *server
	proxies []*fault.Proxy

	goal atomic.Uint64 // the version that watchers are to reach; zero: not known yet

	mu    sync.Mutex
	wrong []error // guarded by mu; what nobody should have seen
}

func (w *world) complain(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, err)
}

// random returns the random numbers of one actor.
func (w *world) random(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, actor)) }

// rest waits for a random part of d; false: ctx has ended.
func rest(ctx context.Context, r *rand.Rand, d time.Duration) bool {
	return reflector.Sleep(ctx, 1+time.Duration(r.Int64N(int64(d))))
}

// A setup is what a world is made of.
type setup struct {
	name    string
	seed    uint64
	network network
	times   times
	require checker.Requirements
	// history is how many bytes of it the store keeps; zero: all, until it is compacted.
	history int64
}

func newWorld(s setup) (*world, error) {
	options := memory.Options{HistoryAge: -1, HistoryBytes: -1, FrameCacheBytes: 16 << 20}
	if s.history != 0 {
		options.HistoryBytes, options.FrameCacheBytes = s.history, 0
	}
	db := memory.Open(options)
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing", Namespaced: true, Fields: []string{"spec.color"}})
	if err != nil {
		return nil, err
	}
	w := &world{
		seed: s.seed, times: s.times, network: s.network, db: db, things: things,
		server: &server{network: s.network, source: things, times: s.times},
	}
	known := s.history == 0 // nobody is told what leaves the window
	w.rec = checker.NewRecorder(checker.Meta{
		Name: s.name, Seed: s.seed, Base: db.Version(), AllCompactionsRecorded: known, MustExpire: known, Requirements: s.require,
	})
	return w, w.server.start()
}

// run lets everything happen, and returns what was recorded.
func (w *world) run(ctx context.Context) *checker.History {
	var watchers, writers sync.WaitGroup
	for i, f := range followers() {
		watchers.Go(func() { f.run(ctx, w, uint64(100+i)) })
	}
	faulty, stop := context.WithCancel(ctx)
	defer stop()
	for i := range uint64(3) {
		writers.Go(func() { w.write(faulty, i) })
	}
	writers.Go(func() { w.trouble(faulty, w.random(10)) })
	w.untilHardEnough(ctx)
	stop()
	writers.Wait()
	w.heal()
	watchers.Wait()
	w.server.stop(true)
	return w.rec.History()
}

// untilHardEnough waits for as long as the run is to take, and on until it has had what it must have: a slow machine takes longer, it
// does not fail.
func (w *world) untilHardEnough(ctx context.Context) {
	for wait, end := w.times.run, time.Now().Add(w.times.run+w.times.patience/2); time.Now().Before(end); wait = w.times.run / 4 {
		if !reflector.Sleep(ctx, wait) {
			return
		}
		h := w.rec.History()
		r, err := checker.Check(h, nil) // an error: a write is known whose predecessor is about to be recorded
		if err == nil && len(h.Meta.Requirements.Missing(&r.Summary)) == 0 {
			return
		}
	}
}

// heal ends all faults and says what is to be reached.
func (w *world) heal() {
	w.mu.Lock()
	proxies := w.proxies
	w.mu.Unlock()
	for _, p := range proxies {
		p.Heal()
	}
	v := w.db.Version()
	w.rec.RecordHeal(v)
	w.goal.Store(uint64(v))
}

// proxy starts a proxy before the server for one watcher, and returns its address. The caller closes it.
func (w *world) proxy(name string, actor uint64) (*fault.Proxy, error) {
	l, err := w.network.listen()
	if err != nil {
		return nil, err
	}
	p := &fault.Proxy{
		Listener: l, Dial: w.server.dial,
		Plan: fault.Random(w.seed^actor, fault.RandomOptions{
			Kinds: append(fault.Kinds(), fault.None), MaxBytes: 64 << 10, MaxWait: w.times.fault, MaxDuration: w.times.fault, ChunkSize: 16, ChunkDelay: w.times.fault / 50,
		}),
		OnInject: func(b fault.Injection) { w.rec.RecordFault(checker.Fault{Kind: b.Kind.String(), Watcher: name}) },
	}
	w.mu.Lock()
	w.proxies = append(w.proxies, p)
	w.mu.Unlock()
	go func() { _ = p.Serve() }() // Close of p ends it
	return p, nil
}

// trouble does to the server what operators, kernels and stores do, until ctx ends: each thing once in a round, in any order.
func (w *world) trouble(ctx context.Context, r *rand.Rand) {
	things := []func(){func() { w.restart(false) }, func() { w.restart(true) }, func() { w.storm(ctx, r) }, func() { w.storm(ctx, r) }}
	for {
		for _, i := range r.Perm(len(things)) {
			if !rest(ctx, r, 2*w.times.trouble) {
				return
			}
			things[i]()
		}
	}
}

func (w *world) restart(gently bool) {
	kind := "kill"
	if gently {
		kind = "drain"
	}
	w.rec.RecordFault(checker.Fault{Kind: kind, Graceful: gently})
	w.server.stop(gently)
	if err := w.server.start(); err != nil {
		w.complain(err)
	}
}

// storm compacts again and again, while watchers resume.
func (w *world) storm(ctx context.Context, r *rand.Rand) {
	for range 10 {
		w.rec.RecordCompaction(w.db.Version, w.db.Compact)
		if !rest(ctx, r, w.times.trouble/5) {
			return
		}
	}
}

// write changes objects, in bursts, until ctx ends. Writers share all keys, so they find what others left.
func (w *world) write(ctx context.Context, actor uint64) {
	r, things := w.random(actor), w.rec.Collection(w.things)
	for n := 0; rest(ctx, r, 2*w.times.pause); {
		for range 1 + r.IntN(12) {
			n++
			if err := w.writeOne(r, things, fmt.Sprintf("%d-%d", actor, n)); err != nil {
				w.complain(fmt.Errorf("write: %w", err))
				return
			}
		}
	}
}

// writeOne writes what fits: it creates what is not there and changes or deletes what is. Somebody else may be first.
func (w *world) writeOne(r *rand.Rand, things *checker.RecordedCollection, mark string) error {
	ctx := context.Background() // a write that was given up would be one whose outcome is not known
	key := listwatch.Key{Namespace: [...]string{"a", "b"}[r.IntN(2)], Name: fmt.Sprintf("n%d", r.IntN(15))}
	data := fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"labels":{"tier":%q}},"spec":{"color":%q,"mark":%q,"fill":"%0*d"}}`,
		key.Namespace, key.Name, [...]string{"gold", "silver", "iron"}[r.IntN(3)], [...]string{"red", "blue"}[r.IntN(2)], mark, r.IntN(800)+1, 0)
	_, err := w.things.Get(ctx, key)
	switch {
	case errors.Is(err, listwatch.NotFound):
		_, err = things.Create(ctx, data)
	case err == nil && r.IntN(5) == 0:
		_, err = things.Delete(ctx, key, store.Preconditions{})
	case err == nil:
		_, err = things.Update(ctx, key, store.Preconditions{}, func(*listwatch.Object) ([]byte, error) { return data, nil })
	}
	if errors.Is(err, listwatch.AlreadyExists) || errors.Is(err, listwatch.NotFound) {
		return nil
	}
	return err
}
