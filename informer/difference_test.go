package informer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/collectiontest"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A remoteHistory is a random history of a server, and informers that follow it over the network.
// The server retains only its newest write, so every interruption of some writes expires watches.
type remoteHistory struct {
	*testing.T
	*rand.Rand
	network   *servertest.Network
	server    *servertest.Server // nil while the server is down
	origin    *store.Collection
	relay     *relay.Relay // between the server and the informers; nil in histories without a relay
	relaying  *servertest.Server
	informers []*informer.Informer[*listwatch.Object]
	handlers  []*objectHandler

	differences, gone, whole, patched atomic.Int64
}

// An objectHandler applies the calls of an informer to a map.
type objectHandler struct {
	mu      sync.Mutex
	objects map[listwatch.Key]string
	wrong   []string
}

func (h *objectHandler) handler() informer.Handler[*listwatch.Object] {
	set := func(old, now *listwatch.Object, key listwatch.Key) {
		h.mu.Lock()
		defer h.mu.Unlock()
		want := ""
		if old != nil {
			want = string(old.Data)
		}
		if h.objects[key] != want {
			h.wrong = append(h.wrong,
				fmt.Sprintf("%v changed from %q, but the handler had %q", key, want, h.objects[key]))
		}
		if delete(h.objects, key); now != nil {
			h.objects[key] = string(now.Data)
		}
	}
	return informer.Handler[*listwatch.Object]{
		OnAdd:    func(o *listwatch.Object, _ bool) { set(nil, o, o.Key) },
		OnUpdate: func(old, now *listwatch.Object) { set(old, now, now.Key) },
		OnDelete: func(d informer.Deleted[*listwatch.Object]) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if _, ok := h.objects[d.Key]; !ok {
				h.wrong = append(h.wrong, fmt.Sprintf("%v was deleted, but the handler did not have it", d.Key))
			}
			delete(h.objects, d.Key)
		},
	}
}

func TestInformersResumeByDifferences(t *testing.T) {
	runHistories(t, false)
}

func TestInformersOfARelayResumeByDifferences(t *testing.T) {
	if patched := runHistories(t, true); patched < int64(racetest.Rounds(30)) {
		t.Errorf("the relay received %d differences, want more", patched)
	}
}

// runHistories returns the number of differences that relays have received.
func runHistories(t *testing.T, relayed bool) (patched int64) {
	var differences, gone, whole int64
	for range racetest.Rounds(6) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newRemoteHistory(t, seed, relayed)
				for range 40 {
					h.round()
				}
				differences += h.differences.Load()
				gone += h.gone.Load()
				whole += h.whole.Load()
				patched += h.patched.Load()
			})
		})
	}
	t.Logf("%d differences with %d deletions, %d whole states; %d differences for relays",
		differences, gone, whole, patched)
	if least := int64(racetest.Rounds(100)); differences < least || gone < least || whole < least/2 {
		t.Errorf("got %d differences, %d deletions and %d whole states, want %d, %[4]d and %d",
			differences, gone, whole, least, least/2)
	}
	return patched
}

func newRemoteHistory(t *testing.T, seed uint64, relayed bool) *remoteHistory {
	h := &remoteHistory{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), network: servertest.NewNetwork(t)}
	h.startOver()
	host := "origin"
	if relayed {
		host = "relay"
		h.openRelay()
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for i, s := range collectiontest.Selections(t) {
		remote := &client.Remote{URL: "http://" + host + "/things", Network: h.network.Transport(), Compress: i%2 == 0}
		model := &objectHandler{objects: map[listwatch.Key]string{}}
		inf := &informer.Informer[*listwatch.Object]{
			Source: remote, Selection: s, Trace: &informer.Trace{Received: h.received},
		}
		inf.Handle(model.handler(), nil)
		h.informers, h.handlers = append(h.informers, inf), append(h.handlers, model)
		running.Go(func() {
			defer remote.Close()
			_ = inf.Run(ctx) // returns the error of ctx
		})
	}
	return h
}

func (h *remoteHistory) received(s informer.StateChange) {
	if s.Since == 0 {
		h.whole.Add(1)
		return
	}
	h.differences.Add(1)
	h.gone.Add(int64(s.Gone))
}

// startOver replaces the store, as the restart of a store in memory does.
func (h *remoteHistory) startOver() {
	db := memory.Open(memory.Options{History: listwatch.Retention{Bytes: 1}})
	var err error
	if h.origin,
		err = db.Collection(store.CollectionSpec{
		Kind: "Thing", Namespaced: true,
		Fields: []string{"spec.node"},
	}); err != nil {
		h.Fatal(err)
	}
}

// openRelay starts a relay, which has no departures.
func (h *remoteHistory) openRelay() {
	upstream := &client.Remote{URL: "http://origin/things", Network: h.network.Transport()}
	r := relay.Open(upstream, relay.Options{
		History: listwatch.Retention{Bytes: 1}, Fields: []string{"spec.node"}, BackfillVersions: h.IntN(2)*100 - 1,
		Trace: &relay.Trace{Patched: func(_, _ listwatch.Version) { h.patched.Add(1) }},
	})
	h.Cleanup(func() { r.Close(); upstream.Close() })
	h.relay, h.relaying = r, h.network.Start("relay", r, servertest.Options{})
}

// disturbRelay cuts the connections of the relay's server, or replaces the relay.
func (h *remoteHistory) disturbRelay() {
	switch h.IntN(10) {
	case 0:
		h.network.Kill("relay")
		h.relay.Close()
		h.openRelay()
	case 1, 2, 3:
		for _, conn := range h.relaying.Conns() {
			conn.Reset()
		}
	}
}

// round changes objects, mostly while the informers are disconnected, and then compares each
// informer and its handler with a list.
func (h *remoteHistory) round() {
	switch {
	case h.server == nil:
	case h.IntN(3) == 0:
		h.network.Kill("origin")
		h.server = nil
	case h.IntN(2) == 0:
		for _, conn := range h.server.Conns() {
			conn.Reset()
		}
	}
	if h.relay != nil {
		h.disturbRelay()
	}
	if h.server == nil && h.IntN(5) == 0 {
		h.startOver()
	}
	for range h.IntN(12) {
		collectiontest.Write(h.T, h.Rand, h.origin)
	}
	if h.server == nil {
		h.server = h.network.Start("origin", h.origin, servertest.Options{})
	}
	for range h.IntN(3) {
		collectiontest.Write(h.T, h.Rand, h.origin)
		<-time.After(time.Duration(h.IntN(2000)) * time.Millisecond)
	}
	<-time.After(3 * time.Minute) // longer than the backoff and the interval of bookmarks
	synctest.Wait()
	for i := range h.informers {
		h.compare(h.informers[i], h.handlers[i])
	}
}

func (h *remoteHistory) compare(i *informer.Informer[*listwatch.Object], model *objectHandler) {
	h.Helper()
	page, err := h.origin.List(h.Context(), listwatch.Query{Selection: i.Selection})
	if err != nil {
		h.Fatal(err)
	}
	stored, err := i.List(listwatch.Query{})
	if err != nil {
		h.Fatal(err)
	}
	same := func(a, b *listwatch.Object) bool { return string(a.Data) == string(b.Data) }
	if !slices.EqualFunc(page.Items, stored, same) {
		h.Fatalf("%v: the store has %d objects, unlike a list of %d", i.Selection.Labels, len(stored), len(page.Items))
	}
	if i.Version() > page.Version {
		h.Fatalf("the store is at version %d, and the list at %d", i.Version(), page.Version)
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	for _, o := range page.Items {
		if model.objects[o.Key] != string(o.Data) {
			h.Fatalf("%v: the handler has another state of %v", i.Selection.Labels, o.Key)
		}
	}
	if len(model.objects) != len(page.Items) || len(model.wrong) > 0 {
		h.Fatalf("the handler has %d objects, want %d; %v", len(model.objects), len(page.Items), model.wrong)
	}
}
