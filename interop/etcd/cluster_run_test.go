package etcd

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/conformance/fault"
)

var (
	faultTime   = flag.Duration("for", 0, "the time for which the cluster has faults; each kind happens at least once")
	clusterSeed = flag.Uint64("seed", 0, "the seed of the cluster's faults; if 0, a random one")
	historyDir  = flag.String("histories", "",
		"the directory for recorded histories; by default only failed ones are saved, with -artifacts")
)

// A clusterTest is a cluster with two servers, writers, readers and watchers.
type clusterTest struct {
	*cluster
	seed     uint64
	rand     *rand.Rand // owned by the test's goroutine
	recorder *checker.Recorder
	clients  *clientLog
	writes   *recorder
	servers  []*serverProcess
	remotes  []*client.Remote

	target    atomic.Uint64
	switches  atomic.Int64
	compacted int64 // the revision of the last compaction
}

// clusterRequirements has the minimum numbers of writes, events, faults and other results of a run.
// Each kind of fault must happen at least once.
var clusterRequirements = checker.Requirements{
	Writes: 150, Events: 600, Bookmarks: 100, Lists: 20, Resumes: 20, Expired: 1, Relists: 1,
	Faults: map[string]int{
		"leader-kill": 1, "leader-pause": 1, "leader-cut": 1, "member-cut": 1, "no-quorum": 1, "storm": 1,
		"compaction":  10,
		"server-kill": 1, "server-pause": 1, "server-cut": 1, "server-behind": 1,
	},
}

// The test runs two servers over an etcd of three members. During all faults, every acknowledged
// write is done exactly once, and consistent reads never return an old state. Every watcher sees
// every write once and in order, even if it resumes at the other server, unless its version expires
// because of a compaction.
func TestWatchersSurviveClusterFaults(t *testing.T) {
	l := startClusterTest(t)
	ctx, cancel := context.WithTimeout(t.Context(), *faultTime+10*waitTimeout)
	var watchers, writers sync.WaitGroup
	defer func() {
		cancel()
		writers.Wait()
		watchers.Wait()
	}()
	for _, f := range l.newWatchers() {
		watchers.Go(func() { f.run(ctx, l.clients.report) })
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	l.startClients(writing, &writers)
	start := time.Now()
	for round := 0; round == 0 || time.Since(start) < *faultTime || l.checkCoverage() != nil && round < 5; round++ {
		l.injectFaults()
	}
	stop()
	writers.Wait()
	l.heal()
	watchers.Wait()
	l.check(start)
}

func startClusterTest(t *testing.T) *clusterTest {
	l := &clusterTest{seed: *clusterSeed}
	if l.seed == 0 {
		l.seed = rand.Uint64N(1<<32) + 1
	}
	l.rand = l.random(0)
	t.Logf("-seed=%d", l.seed)
	start := time.Now()
	l.cluster = startCluster(t)
	t.Logf("the cluster started in %v", time.Since(start).Round(time.Millisecond))
	l.writes = &recorder{cluster: l.cluster, revision: l.revision()}
	l.recorder = checker.NewRecorder(checker.Meta{
		Name: t.Name(), Seed: l.seed, Base: listwatch.Version(l.writes.revision), AllCompactionsRecorded: true,
		Requirements: clusterRequirements,
	})
	l.recorder.Fingerprint = sumWithoutVersion
	l.clients = &clientLog{recorder: l.recorder}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.summary())
		}
	})
	for i, name := range []string{"1", "2"} {
		l.servers = append(l.servers, startServer(t, name, l.members, fault.RandomOptions{
			Kinds:    []fault.Kind{fault.Reset, fault.Cut, fault.Stall, fault.None},
			MaxBytes: 16 << 10, MaxWait: 2 * time.Second, MaxDuration: 500 * time.Millisecond,
		}, fault.RandomOptions{
			Kinds:    []fault.Kind{fault.Reset, fault.Cut, fault.Stall, fault.Latency},
			MaxBytes: 16 << 10, MaxWait: 2 * time.Second, MaxDuration: time.Second, ChunkDelay: 10 * time.Millisecond,
		}, l.seed+uint64(10*i)))
	}
	return l
}

// random returns a random number generator. Each actor of the test, such as a writer, has its
// own number and so its own sequence.
func (l *clusterTest) random(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(l.seed, actor)) }

var versionMember = regexp.MustCompile(`"resourceVersion":"\d+",|,"resourceVersion":"\d+"`)

// sumWithoutVersion returns the fingerprint of an object without its version, because the
// values in etcd do not contain it. The checker compares the version separately.
func sumWithoutVersion(data []byte) checker.Fingerprint {
	if at := versionMember.FindIndex(data); at != nil {
		data = slices.Concat(data[:at[0]], data[at[1]:])
	}
	return checker.FingerprintOf(data)
}

// startClients starts the writers and readers, which run until ctx ends.
func (l *clusterTest) startClients(ctx context.Context, running *sync.WaitGroup) {
	for i := range uint64(6) {
		w := newClusterWriter(fmt.Sprint("w", i), l.clients, l.servers, l.random(10+i))
		running.Go(func() { w.run(ctx, 40*time.Millisecond) })
	}
	direct := newClusterWriter("t", l.clients, nil, l.random(20))
	running.Go(func() { direct.transact(ctx, l.client, 300*time.Millisecond) })
	for i := range uint64(2) {
		r := l.random(30 + i)
		running.Go(func() { l.listRandomly(ctx, r) })
	}
}

// listRandomly lists from random servers until ctx ends. Each list requests the newest state, a
// state at least as new as the last acknowledged write, or the state at exactly the version of that
// write.
func (l *clusterTest) listRandomly(ctx context.Context, r *rand.Rand) {
	var remotes []*client.Remote
	for _, s := range l.servers {
		remote := &client.Remote{URL: "http://" + s.clientAddr + collectionPath, IdleTimeout: 10 * time.Second}
		defer remote.Close()
		remotes = append(remotes, remote)
	}
	for sleepRandomly(ctx, r, 150*time.Millisecond) {
		q := listwatch.Query{}
		if v := l.clients.newestAcknowledged(); v != 0 && r.IntN(3) > 0 {
			q.Start, q.Version = listwatch.StartAt, v
			if r.IntN(3) == 0 {
				q.Match = listwatch.MatchExact
			}
		}
		began := l.recorder.Elapsed()
		page, err := remotes[r.IntN(len(remotes))].List(ctx, q)
		switch listwatch.CodeOf(err) {
		case listwatch.Unavailable, listwatch.NotYet, listwatch.TooSlow:
			continue
		case listwatch.Expired:
			if q.Match == listwatch.MatchExact {
				continue // the version was compacted
			}
		}
		switch {
		case err == nil:
			l.recorder.RecordList("", began, q, page)
		case ctx.Err() == nil:
			l.clients.report("list of %+v: %v", q, err)
		}
	}
}

// heal ends all faults, waits until the cluster works again, and sets target, the version that the
// watchers must reach.
func (l *clusterTest) heal() {
	l.leader(-1)
	for _, s := range l.servers {
		s.heal()
		l.waitUntilReady(s)
	}
	last := newClusterWriter("last", l.clients, l.servers[:1], l.random(40))
	eventually(l, "acknowledged write after the last fault", func() bool {
		before := l.clients.newestAcknowledged()
		last.send(http.MethodPut, listwatch.Key{Namespace: "a", Name: "n0"}, 0)
		last.send(http.MethodPost, listwatch.Key{Namespace: "a", Name: "n0"}, 0)
		return l.clients.newestAcknowledged() > before
	})
	v := l.clients.newestAcknowledged()
	l.recorder.RecordHeal(v)
	l.target.Store(uint64(v))
}

// waitUntilReady waits until s reports that it is ready.
func (l *clusterTest) waitUntilReady(s *serverProcess) {
	l.Helper()
	eventually(l, "readiness of server "+s.name, func() bool {
		code, _ := s.readyz(l.Context())
		return code == http.StatusOK
	})
}
