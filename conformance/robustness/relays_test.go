package robustness_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// TestRelaysKeepWatchGuarantees kills and restarts relays. All relays follow one store, the origin.
// Once, while a relay is stopped, the test compacts the history of the origin. Half of the watchers
// of each selection stay with the relay that they started with; the other half may reconnect to any
// relay. The checker verifies the events of all watchers.
func TestRelaysKeepWatchGuarantees(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkRelays(t, seed) })
		})
	}
}

func checkRelays(t *testing.T, seed uint64) {
	db := memory.Open(memory.Options{})
	rec := checker.NewRecorder(checker.Meta{
		Name: "relays", Seed: seed, Base: db.Version(),
		Requirements: checker.Requirements{Writes: 100, Events: 500, Resumes: 10, Expired: 1, Relists: 1},
	})
	cluster := startRelays(t, db)
	defer cluster.close()
	random := rand.New(rand.NewPCG(seed, 1))
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	cluster.startWatchers(ctx, rec, &watchers)
	writes := rec.Collection(cluster.things)
	burst := func(n int) {
		for range n {
			writeRandomly(ctx, t, writes, random)
			<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
		}
	}
	burst(20)
	for round := range 4 {
		name := relayNames[random.IntN(len(relayNames))]
		cluster.kill(name)
		rec.RecordFault(checker.Fault{Kind: "kill"})
		burst(20)
		if round == 2 {
			// Discard history that the watchers of the killed relay have not seen.
			rec.RecordCompaction(db.Version, db.Compact)
			burst(1)
		}
		cluster.start(name)
		burst(10)
	}
	rec.RecordHeal(db.Version())
	<-time.After(5 * time.Minute)
	cancel()
	watchers.Wait()
	report, err := checker.Check(rec.History(), nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d events, %d resumes, %d expired", report.Summary.Events, report.Summary.Resumes, report.Summary.Expired)
}

var relayNames = []string{"relay0", "relay1", "relay2"}

// A relayCluster consists of an origin and several relays of it on an in-memory network.
type relayCluster struct {
	t       *testing.T
	network *servertest.Network
	things  *store.Collection // the collection of the origin
	relays  map[string]*relay.Relay
	remotes map[string]*client.Remote // the clients through which the relays watch the origin
}

func startRelays(t *testing.T, db *memory.DB) *relayCluster {
	t.Helper()
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing", Namespaced: true, Fields: []string{"spec.color"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &relayCluster{
		t, servertest.NewNetwork(t), things, make(map[string]*relay.Relay), make(map[string]*client.Remote),
	}
	c.network.Start("origin", things, servertest.Options{})
	c.network.SetAlias("any", relayNames...)
	for _, name := range relayNames {
		c.start(name)
	}
	return c
}

func (r *relayCluster) remote(host string) *client.Remote {
	return &client.Remote{URL: "http://" + host + "/things", Network: r.network.Transport()}
}

// start starts a relay with an empty history.
func (r *relayCluster) start(name string) {
	r.remotes[name] = r.remote("origin")
	r.relays[name] = relay.Open(r.remotes[name], relay.Options{Fields: []string{"spec.color"}})
	r.network.Start(name, r.relays[name], servertest.Options{})
}

func (r *relayCluster) kill(name string) {
	r.network.Kill(name)
	r.relays[name].Close()
	r.remotes[name].Close()
}

func (r *relayCluster) close() {
	for name := range r.relays {
		r.kill(name)
	}
	r.network.Kill("origin")
}

// startWatchers starts eight watchers of each selection. One half of them stay with one relay each;
// the other half use any running relay.
func (r *relayCluster) startWatchers(ctx context.Context, rec *checker.Recorder, watchers *sync.WaitGroup) {
	i := 0
	for name, q := range selections(r.t) {
		q.Bookmarks = true
		for range 8 {
			i++
			host := "any"
			if i%2 == 0 {
				host = relayNames[i/2%len(relayNames)]
			}
			remote, watcher := r.remote(host), rec.Watcher(fmt.Sprint(name, i))
			remote.Trace = watcher.Trace()
			source := watcher.Source(remote, "http")
			watchers.Go(func() {
				defer remote.Close()
				follow(ctx, source, q)
			})
		}
	}
}

func selections(t *testing.T) map[string]listwatch.Query {
	t.Helper()
	red, err := listwatch.ParseLabelSelector("color=red")
	if err != nil {
		t.Fatal(err)
	}
	blue, err := listwatch.ParseFieldSelector("spec.color=blue")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]listwatch.Query{
		"everything": {},
		"label":      {Selection: listwatch.Selection{Labels: red}},
		"field":      {Selection: listwatch.Selection{Fields: blue}},
		"name":       {Selection: listwatch.Selection{Namespace: "default", Name: "b"}},
		"namespace":  {Selection: listwatch.Selection{Namespace: "elsewhere"}},
	}
}

// follow watches s until ctx ends. After an error it starts a new watch with initial events.
func follow(ctx context.Context, s listwatch.Source, q listwatch.Query) {
	for ctx.Err() == nil {
		w, err := s.Watch(ctx, q)
		if err == nil {
			for _, err := range listwatch.All(ctx, w) {
				if err != nil {
					break
				}
			}
			w.Close()
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func writeRandomly(ctx context.Context, t *testing.T, c *checker.RecordedCollection, random *rand.Rand) {
	t.Helper()
	key := listwatch.Key{
		Namespace: []string{"default", "elsewhere"}[random.IntN(2)], Name: string(rune('a' + random.IntN(5))),
	}
	color := []string{"red", "green", "blue"}[random.IntN(3)]
	data := fmt.Appendf(nil,
		`{"metadata":{"name":%q,"namespace":%q,"labels":{"color":%q}},"spec":{"color":%[3]q,"n":%d}}`, key.Name,
		key.Namespace, color, random.IntN(1000))
	_, err := c.Create(ctx, data)
	if errors.Is(err, listwatch.AlreadyExists) {
		if random.IntN(4) == 0 {
			_, err = c.Delete(ctx, key, listwatch.Preconditions{})
		} else {
			_, err = c.Update(ctx, key, listwatch.Preconditions{},
				func(*listwatch.Object) ([]byte, error) { return data, nil })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
