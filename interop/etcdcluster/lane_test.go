package etcdcluster

import (
	"context"
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

// A lane is a run: a cluster, two servers over it, writers, readers, watchers, and what goes wrong.
type lane struct {
	*cluster
	seed    uint64
	rand    *rand.Rand // of the goroutine of the test
	rec     *checker.Recorder
	desk    *desk
	scribe  *scribe
	servers []*server
	dialed  []*client.Remote

	goal      atomic.Uint64
	moves     atomic.Int64
	compacted int64 // the revision that was compacted last
}

// enough is what a run must have had. All kinds of trouble come once at least.
var enough = checker.Requirements{
	Writes: 150, Events: 600, Bookmarks: 100, Lists: 20, Resumes: 20, Expired: 1, Relists: 1,
	Faults: map[string]int{
		"leader-kill": 1, "leader-pause": 1, "leader-cut": 1, "member-cut": 1, "no-quorum": 1, "storm": 1, "compaction": 10,
		"server-kill": 1, "server-pause": 1, "server-cut": 1, "server-behind": 1,
	},
}

// Two servers over an etcd of three members: whatever happens to any of them, what was acknowledged is there, once; nobody is shown an old state who
// asked for the newest; and every watcher, wherever it goes on, sees every write exactly, in order and once, or is told that its place expired where
// that is so.
func TestWatchersBearTheFaultsOfACluster(t *testing.T) {
	l := startLane(t)
	ctx, cancel := context.WithTimeout(t.Context(), *laneFor+10*patience)
	var watchers, writers sync.WaitGroup
	defer func() {
		cancel()
		writers.Wait()
		watchers.Wait()
	}()
	for _, f := range l.followers() {
		watchers.Go(func() { f.run(ctx, l.desk.complain) })
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	l.work(writing, &writers)
	begun := time.Now()
	for round := 0; round == 0 || time.Since(begun) < *laneFor || l.tooEasy() != nil && round < 5; round++ {
		l.trouble()
	}
	stop()
	writers.Wait()
	l.heal()
	watchers.Wait()
	l.finish(begun)
}

func startLane(t *testing.T) *lane {
	l := &lane{seed: *laneSeed}
	if l.seed == 0 {
		l.seed = rand.Uint64N(1<<32) + 1
	}
	l.rand = l.random(0)
	t.Logf("-lane.seed=%d", l.seed)
	begun := time.Now()
	l.cluster = startCluster(t)
	t.Logf("%v for the cluster to start", time.Since(begun).Round(time.Millisecond))
	l.scribe = &scribe{cluster: l.cluster, up: l.revision()}
	l.rec = checker.NewRecorder(checker.Meta{
		Name: t.Name(), Seed: l.seed, Base: listwatch.Version(l.scribe.up), AllCompactionsRecorded: true, Requirements: enough,
	})
	l.rec.Fingerprint = sumWithoutVersion
	l.desk = &desk{rec: l.rec}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.story())
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

// random returns the random numbers of one actor.
func (l *lane) random(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(l.seed, actor)) }

var versionMember = regexp.MustCompile(`"resourceVersion":"\d+",|,"resourceVersion":"\d+"`)

// sumWithoutVersion is the fingerprint of an object without its version, as etcd has it. The version is judged by itself.
func sumWithoutVersion(data []byte) checker.Fingerprint {
	if at := versionMember.FindIndex(data); at != nil {
		data = slices.Concat(data[:at[0]], data[at[1]:])
	}
	return checker.FingerprintOf(data)
}

// work starts who writes and reads until ctx ends.
func (l *lane) work(ctx context.Context, all *sync.WaitGroup) {
	for i := range uint64(6) {
		w := newWriter(fmt.Sprint("w", i), l.desk, l.servers, l.random(10+i))
		all.Go(func() { w.run(ctx, 40*time.Millisecond) })
	}
	past := newWriter("t", l.desk, nil, l.random(20))
	all.Go(func() { past.transact(ctx, l.raw, 300*time.Millisecond) })
	for i := range uint64(2) {
		r := l.random(30 + i)
		all.Go(func() { l.read(ctx, r) })
	}
}

// read lists at any server, until ctx ends: the newest state, or one not older than what some server has acknowledged, or that very one.
func (l *lane) read(ctx context.Context, r *rand.Rand) {
	var remotes []*client.Remote
	for _, s := range l.servers {
		remote := &client.Remote{URL: "http://" + s.front + path, IdleTimeout: 10 * time.Second}
		defer remote.Close()
		remotes = append(remotes, remote)
	}
	for rest(ctx, r, 150*time.Millisecond) {
		q := listwatch.Query{}
		if v := l.desk.acknowledged(); v != 0 && r.IntN(3) > 0 {
			q.Start, q.Version = listwatch.At, v
			if r.IntN(3) == 0 {
				q.Match = listwatch.Exact
			}
		}
		began := l.rec.Elapsed()
		page, err := remotes[r.IntN(len(remotes))].List(ctx, q)
		switch listwatch.CodeOf(err) {
		case listwatch.Unavailable, listwatch.NotYet, listwatch.TooSlow:
			continue
		case listwatch.Expired:
			if q.Match == listwatch.Exact {
				continue // it was compacted meanwhile
			}
		}
		switch {
		case err == nil:
			l.rec.RecordList("", began, q, page)
		case ctx.Err() == nil:
			l.desk.complain("list of %+v: %v", q, err)
		}
	}
}

// heal waits until everything is well, and says what is to be reached.
func (l *lane) heal() {
	l.leader(-1)
	for _, s := range l.servers {
		s.heal()
		l.ready(s)
	}
	last := newWriter("last", l.desk, l.servers[:1], l.random(40))
	l.eventually("a write is acknowledged when all is well", func() bool {
		before := l.desk.acknowledged()
		last.send(http.MethodPut, listwatch.Key{Namespace: "a", Name: "n0"}, 0)
		last.send(http.MethodPost, listwatch.Key{Namespace: "a", Name: "n0"}, 0)
		return l.desk.acknowledged() > before
	})
	v := l.desk.acknowledged()
	l.rec.RecordHeal(v)
	l.goal.Store(uint64(v))
}

// ready waits until s says that it can serve.
func (l *lane) ready(s *server) {
	l.Helper()
	l.eventually("server "+s.name+" is ready", func() bool {
		code, _ := s.readyz(l.Context())
		return code == http.StatusOK
	})
}
