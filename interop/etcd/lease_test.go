package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/listwatch/listwatch/typed"
)

type agent struct {
	listwatch.Metadata `json:"metadata"`
	TTL                int `json:"ttl"` // in seconds
}

var agents = store.CollectionSpec{
	APIVersion: "example.com/v1", Kind: "Agent",
	TTL: typed.TTL(func(a agent) time.Duration { return time.Duration(a.TTL) * time.Second }),
}

func agentJSON(name string, ttl int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q},"ttl":%d}`, name, ttl)
}

func agentKey(name string) listwatch.Key { return listwatch.Key{Name: name} }

// A leaseTest has an etcd, and a server over it.
type leaseTest struct {
	*testing.T
	client *clientv3.Client
	url    string
	agents *store.Collection
}

func startLeaseTest(t *testing.T) *leaseTest {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	l := &leaseTest{T: t, client: etcdtest.Dial(t, server.URL), url: server.URL}
	l.agents = l.open(l.url, agents)
	return l
}

// open opens the collection at another server.
func (t *leaseTest) open(url string, spec store.CollectionSpec) *store.Collection {
	t.Helper()
	db := openDB(t, etcd.Options{Endpoints: []string{url}, Prefix: "/ttl"})
	return testkit.Must(db.Collection(spec))(t)
}

func (t *leaseTest) create(name string, ttl int) *listwatch.Object {
	t.Helper()
	return testkit.Must(t.agents.Create(t.Context(), agentJSON(name, ttl)))(t)
}

func (t *leaseTest) replace(name string, ttl int) *listwatch.Object {
	t.Helper()
	return testkit.Must(t.agents.Replace(t.Context(), agentKey(name), agentJSON(name, ttl)))(t)
}

// lease returns the lease of an object, its TTL, and the seconds that are left.
func (t *leaseTest) lease(name string) (id clientv3.LeaseID, ttl, left int64) {
	t.Helper()
	got := testkit.Must(t.client.Get(t.Context(), "/ttl/agents.example.com/"+name))(t)
	if len(got.Kvs) != 1 || got.Kvs[0].Lease == 0 {
		return 0, 0, 0
	}
	id = clientv3.LeaseID(got.Kvs[0].Lease)
	info := testkit.Must(t.client.TimeToLive(t.Context(), id))(t)
	return id, info.GrantedTTL, info.TTL
}

func renewAgent(ctx context.Context, c *store.Collection, name string) error {
	_, err := c.Renew(ctx, agentKey(name), listwatch.Preconditions{})
	return err
}

// An object ends after its TTL with one ordinary DELETED event. Renewals through any server keep it
// alive, and make no revision.
func TestLeasesEndObjects(t *testing.T) {
	l := startLeaseTest(t)
	other := l.open(l.url, agents)
	const ttl = 5
	alive, dead := l.create("alive", ttl), l.create("dead", ttl)
	w := watchAt(t, other, dead.Version)
	started := time.Now()
	for time.Since(started) < 2*ttl*time.Second {
		for _, c := range []*store.Collection{l.agents, other} {
			if err := renewAgent(t.Context(), c, "alive"); err != nil {
				t.Fatal(err)
			}
		}
		sleep(time.Second)
	}
	want := fmt.Sprintf("DELETED dead %d", dead.Version+1)
	if got := readEvents(t, w, 1); got[0] != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if s := other.Stats(); s.Expiring != 1 || s.Objects != 1 {
		t.Errorf("got %d objects, %d of them expire, want one that expires", s.Objects, s.Expiring)
	}
	if err := renewAgent(t.Context(), other, "dead"); !errors.Is(err, listwatch.NotFound) {
		t.Errorf("renewal of an object that has ended: %v, want NotFound", err)
	}
	last := time.Now()
	if err := renewAgent(t.Context(), l.agents, "alive"); err != nil {
		t.Fatal(err)
	}
	want = fmt.Sprintf("DELETED alive %d", dead.Version+2)
	if got := readEvents(t, w, 1); got[0] != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if lived := time.Since(last); lived < ttl*time.Second {
		t.Errorf("an object lived for %v after its renewal, want %d s", lived, ttl)
	}
	_, err := l.agents.Replace(t.Context(), alive.Key, agentJSON("alive", ttl))
	wantError(t, err, listwatch.NotFound)
}

// The key has a lease exactly while its object has a TTL, and the newest write determines it.
func TestLeaseFollowsTheTTL(t *testing.T) {
	l := startLeaseTest(t)
	o := l.create("a", 10)
	first, granted, _ := l.lease("a")
	if granted != 10 {
		t.Errorf("got a lease of %d s, want 10", granted)
	}
	sleep(3 * time.Second)
	o2 := testkit.Must(l.agents.Patch(t.Context(), o.Key, listwatch.Patch{
		Type: listwatch.MergePatch, Data: []byte(`{"spec":1}`),
	}))(t)
	if id, _, left := l.lease("a"); id != first || left < 8 || o2.Version == o.Version {
		t.Errorf("after an update: lease %x with %d s left, want %x with 8 or more", id, left, first)
	}
	l.replace("a", 100)
	if id, granted, _ := l.lease("a"); id == first || granted != 100 {
		t.Errorf("after a longer TTL: lease %x of %d s, want another one of 100 s", id, granted)
	}
	sleep(3 * time.Second)
	l.replace("a", 10) // the first lease still exists, and must be renewed
	if id, _, left := l.lease("a"); id != first || left < 8 {
		t.Errorf("after the first TTL again: lease %x with %d s left, want %x with 8 or more", id, left, first)
	}
	l.replace("a", 0)
	if id, _, _ := l.lease("a"); id != 0 {
		t.Errorf("without a TTL: lease %x, want none", id)
	}
	if err := renewAgent(t.Context(), l.agents, "a"); err != nil {
		t.Errorf("renewal without a TTL: %v", err)
	}
	l.replace("a", 10)
	testkit.Must(l.agents.Patch(t.Context(), o.Key, listwatch.Patch{
		Type: listwatch.MergePatch, Data: []byte(`{"metadata":{"finalizers":["example.com/f"]}}`),
	}))(t)
	if id, _, _ := l.lease("a"); id != 0 {
		t.Errorf("with a finalizer: lease %x, want none", id)
	}
	// A successor with the same name has a lease of its own.
	b := l.create("b", 100)
	before, _, _ := l.lease("b")
	testkit.Must(l.agents.Delete(t.Context(), b.Key, listwatch.Preconditions{}))(t)
	l.create("b", 100)
	if after, _, _ := l.lease("b"); after == before || after == 0 {
		t.Errorf("the successor has lease %x, its predecessor %x", after, before)
	}
	_, err := l.agents.Renew(t.Context(), b.Key, listwatch.Preconditions{UID: uidOf(b.Data)})
	wantError(t, err, listwatch.Conflict)
}

func TestRefusedCreateGrantsNoLease(t *testing.T) {
	l := startLeaseTest(t)
	l.create("a", 100)
	for range 10 {
		_, err := l.agents.Create(t.Context(), agentJSON("a", 100))
		wantError(t, err, listwatch.AlreadyExists)
	}
	if all := testkit.Must(l.client.Leases(t.Context()))(t); len(all.Leases) != 1 {
		t.Errorf("etcd has %d leases, want 1", len(all.Leases))
	}
}

// A TTL may be years, so a client could otherwise fill etcd with leases.
func TestNoLeaseRemainsWithoutItsObject(t *testing.T) {
	l := startLeaseTest(t)
	const ttl = 1 << 30
	l.create("a", ttl)
	var creates sync.WaitGroup
	for i := range 16 {
		creates.Go(func() {
			_, err := l.agents.Create(t.Context(), agentJSON([]string{"a", "b"}[i%2], ttl))
			if err != nil && !errors.Is(err, listwatch.AlreadyExists) {
				t.Error(err)
			}
		})
	}
	creates.Wait()
	testkit.Must(l.agents.Delete(t.Context(), agentKey("a"), listwatch.Preconditions{}))(t)
	kept, _, _ := l.lease("b")
	got := testkit.Must(l.client.Leases(t.Context()))(t)
	if len(got.Leases) != 1 || got.Leases[0].ID != kept {
		t.Errorf("%d leases remain, want only that of the second agent", len(got.Leases))
	}
}

func TestRenewalMakesNoRevision(t *testing.T) {
	l := startLeaseTest(t)
	o := l.create("a", 100)
	for range 100 {
		if err := renewAgent(t.Context(), l.agents, "a"); err != nil {
			t.Fatal(err)
		}
	}
	got := testkit.Must(l.client.Get(t.Context(), "x"))(t)
	if got.Header.Revision != int64(o.Version) {
		t.Errorf("etcd is at revision %d after the renewals, want %d", got.Header.Revision, o.Version)
	}
}

// A server whose watch of etcd is late, and a server with a shorter TTL, renew the lease that the
// key has.
func TestEveryServerRenewsTheLeaseOfTheKey(t *testing.T) {
	l := startLeaseTest(t)
	proxy := etcdtest.StartProxy(t, l.url)
	l.create("a", 9)
	late := l.open(proxy.URL, agents)
	proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		return func(*pb.WatchResponse, func(*pb.WatchResponse)) {} // drops everything
	})
	proxy.Cut()
	different := agents
	different.TTL = func([]byte) time.Duration { return 5 * time.Second }
	others := map[string]*store.Collection{"late": late, "different": l.open(l.url, different)}
	l.replace("a", 10)
	id, granted, _ := l.lease("a")
	for name, c := range others {
		sleep(3 * time.Second)
		if err := renewAgent(t.Context(), c, "a"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after, _, left := l.lease("a"); after != id || left < granted-2 {
			t.Errorf("%s: lease %x with %d s left, want %x with at least %d", name, after, left, id, granted-2)
		}
	}
}

// After a restart with a longer TTL, an object would otherwise end before its agent renews it.
func TestRenewalAppliesALongerTTL(t *testing.T) {
	l := startLeaseTest(t)
	o := l.create("a", 10)
	longer := agents
	longer.TTL = func([]byte) time.Duration { return 100 * time.Second }
	restarted := l.open(l.url, longer)
	w := watchAt(t, l.agents, o.Version)
	renewed := testkit.Must(restarted.Renew(t.Context(), o.Key, listwatch.Preconditions{UID: uidOf(o.Data)}))(t)
	id, granted, _ := l.lease("a")
	if granted != 100 {
		t.Errorf("got a lease of %d s, want 100", granted)
	}
	want := fmt.Sprintf("MODIFIED a %d", renewed.Version)
	if got := readEvents(t, w, 1); got[0] != want || renewed.Version != o.Version+1 ||
		string(renewed.Data) != string(o.At(renewed.Version).Data) {
		t.Errorf("got %v and %s, want %s and the same object", got, renewed.Data, want)
	}
	// Later renewals write nothing, whatever their server's TTL is.
	for _, c := range []*store.Collection{restarted, l.agents} {
		again := testkit.Must(c.Renew(t.Context(), o.Key, listwatch.Preconditions{}))(t)
		if after, _, _ := l.lease("a"); after != id || again.Version != renewed.Version {
			t.Errorf("got lease %x and version %d, want %x and %d", after, again.Version, id, renewed.Version)
		}
	}
}

func TestRenewalOfAnOldStateIsRefused(t *testing.T) {
	l := startLeaseTest(t)
	old := l.create("a", 100)
	renewer := l.agents.Backend().(store.Renewer)
	newest := l.replace("a", 200)
	wantError(t, renewer.Renew(t.Context(), old), listwatch.Conflict)
	if err := renewer.Renew(t.Context(), newest); err != nil {
		t.Error(err)
	}
	// The lease ends, and a server whose watch is late does not know that yet.
	proxy := etcdtest.StartProxy(t, l.url)
	late := l.open(proxy.URL, agents).Backend().(store.Renewer)
	proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		return func(*pb.WatchResponse, func(*pb.WatchResponse)) {} // drops everything
	})
	proxy.Cut()
	id, _, _ := l.lease("a")
	testkit.Must(l.client.Revoke(t.Context(), id))(t)
	wantError(t, late.Renew(t.Context(), newest), listwatch.Conflict)
}

func TestReadOnlyServerDoesNotRenew(t *testing.T) {
	l := startLeaseTest(t)
	l.create("a", 100)
	db := openDB(t, etcd.Options{Endpoints: []string{l.url}, Prefix: "/ttl", ReadOnly: true})
	wantError(t, renewAgent(t.Context(), testkit.Must(db.Collection(agents))(t), "a"), listwatch.Unsupported)
}

// A renewingAgent renews its object once a second, until its test ends.
type renewingAgent struct {
	name    string
	ttl     int // in seconds
	servers []*store.Collection

	mu sync.Mutex
	// Guarded by mu.
	called time.Time // the start of the last renewal that was acknowledged
	count  int
}

func (a *renewingAgent) run(ctx context.Context, t testing.TB) {
	for i := 0; ctx.Err() == nil; i++ {
		called := time.Now()
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := renewAgent(limited, a.servers[i%len(a.servers)], a.name)
		cancel()
		if age := time.Since(a.called); errors.Is(err, listwatch.NotFound) {
			if age < time.Duration(a.ttl)*time.Second {
				t.Errorf("%s was renewed %v ago: %v", a.name, age, err)
				return
			}
			// No renewal arrived in time.
			_, err = a.servers[0].Create(ctx, agentJSON(a.name, a.ttl))
		}
		if err == nil {
			a.mu.Lock()
			a.called, a.count = called, a.count+1
			a.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (a *renewingAgent) renewals() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

// Three members lose their leader in each way while agents renew through two servers. No object
// ends that was renewed in time, and the objects of dead agents end.
func TestRenewalsSurviveLeaderFaults(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	o := etcd.Options{Endpoints: c.urls(), Prefix: "/ttl", Timeout: 5 * time.Second}
	servers := []*store.Collection{
		testkit.Must(openDB(t, o).Collection(agents))(t), testkit.Must(openDB(t, o).Collection(agents))(t),
	}
	const ttl, living = 20, 10
	ctx, cancel := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer cancel()
	var all []*renewingAgent
	for i := range living {
		a := &renewingAgent{name: fmt.Sprint("alive-", i), ttl: ttl, servers: servers}
		testkit.Must(servers[0].Create(t.Context(), agentJSON(a.name, ttl)))(t)
		all = append(all, a)
		renewing.Go(func() { a.run(ctx, t) })
	}
	for _, f := range leaderFaults {
		dead := fmt.Sprint("dead-", len(f.name))
		created := time.Now()
		testkit.Must(servers[1].Create(t.Context(), agentJSON(dead, 2)))(t)
		before := make([]int, len(all))
		for i, a := range all {
			before[i] = a.renewals()
		}
		heal := f.strike(c)
		started := time.Now()
		eventually(t, f.name+": renewals", func() bool {
			for i, a := range all {
				if a.renewals() < before[i]+3 {
					return false
				}
			}
			return true
		})
		recovered := time.Since(started)
		heal()
		c.waitUntilCaughtUp()
		eventually(t, f.name+": the end of an object", func() bool {
			_, err := servers[0].Get(t.Context(), agentKey(dead))
			return errors.Is(err, listwatch.NotFound)
		})
		t.Logf("%s: renewals after %v, an object of 2 s ended after %v", f.name, recovered.Round(time.Millisecond),
			time.Since(created).Round(time.Millisecond))
	}
	sleep(ttl * time.Second) // a lease that no renewal has reached would end now
	for _, a := range all {
		if err := renewAgent(t.Context(), servers[1], a.name); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
	}
}

func BenchmarkRenewals(b *testing.B) {
	server := etcdtest.StartDurable(b)
	c := testkit.Must(openDB(b, etcd.Options{Endpoints: []string{server.URL}}).Collection(agents))(b)
	const objects = 1000
	for i := range objects {
		testkit.Must(c.Create(b.Context(), agentJSON(fmt.Sprint("a-", i), 1000)))(b)
	}
	for name, renew := range map[string]func(i int) error{
		"renewals/s": func(i int) error { return renewAgent(b.Context(), c, fmt.Sprint("a-", i%objects)) },
		"writes/s": func(i int) error {
			_, err := c.Replace(b.Context(), agentKey(fmt.Sprint("a-", i%objects)),
				fmt.Appendf(nil, `{"metadata":{"name":"a-%d"},"ttl":1000,"spec":%d}`, i%objects, i))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) { runConcurrently(b, 50, name, renew) })
	}
}
