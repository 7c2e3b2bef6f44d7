package etcd

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/listwatch/listwatch/watchserver"
)

var rounds = flag.Int("rounds", 1, "number of times that each fault of the leader happens")

// sleep waits for d while a fault is active.
func sleep(d time.Duration) { <-time.After(d) }

// leaderFaults holds three faults of the leader, and a fault that kills every member in turn, so
// that every watch loses its connection.
var leaderFaults = []struct {
	name   string
	strike func(c *cluster) (heal func())
}{
	{"leader killed", func(c *cluster) func() {
		i := c.leader(-1)
		c.killMember(i)
		return func() { c.restartMember(i) }
	}},
	{"leader paused", func(c *cluster) func() {
		i := c.leader(-1)
		c.pauseMember(i)
		return func() { c.resumeMember(i) }
	}},
	{"leader disconnected from its peers", func(c *cluster) func() {
		i := c.leader(-1)
		c.network.cutOff(i)
		c.waitUntilIsolated(i)
		return func() { c.network.restore(false) }
	}},
	{"every member killed in turn", func(c *cluster) func() {
		for i := range c.members {
			c.leader(-1) // a majority must be running before the next member is killed
			c.killMember(i)
			sleep(300 * time.Millisecond)
			c.restartMember(i)
		}
		return func() {}
	}},
}

// A replacedServer serves a store of its own at an address that does not change.
type replacedServer struct {
	t       *testing.T
	options etcd.Options
	address string
	stop    func() // ends the current server
}

// replace starts a server with a new store in place of the current one, if any, and ends that one.
func (s *replacedServer) replace() {
	s.t.Helper()
	db, err := etcd.Open(s.t.Context(), s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	server := &http.Server{Handler: &watchserver.Server{Source: openThings(s.t, db)}}
	if s.stop != nil {
		s.stop()
	}
	l, err := ports.Listen(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	go server.Serve(l) // ends with the server
	s.stop = sync.OnceFunc(func() {
		server.Close()
		db.Close()
	})
	s.t.Cleanup(s.stop)
}

// The test runs two stores over three members. The leader is killed, paused and disconnected, and
// later one store is closed. Another server is replaced during each fault: the new one starts while
// the fault is active, and must resume the watcher of the old one. Nothing is compacted, so no
// version may expire, and watchers must see every write.
func TestWatchersSurviveLeaderFaults(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	got, err := c.client.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	base := got.Header.Revision
	rec := checker.NewRecorder(checker.Meta{
		Name: t.Name(), Base: listwatch.Version(base), SharedVersions: true,
		Requirements: checker.Requirements{Writes: 100 * *rounds, Events: 300 * *rounds, Bookmarks: 1, Resumes: 1},
	})
	var counted traceCounts
	o := etcd.Options{Endpoints: c.urls(), Prefix: "/faults", Trace: counted.trace(), Timeout: waitTimeout}
	a := openThings(t, openDB(t, o))
	closing, err := etcd.Open(t.Context(), o) // closed during the test
	if err != nil {
		t.Fatal(err)
	}
	b := openThings(t, closing)
	front := httptest.NewServer(&watchserver.Server{Source: b})
	remote := &client.Remote{
		URL:     front.URL,
		Backoff: listwatch.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
	}
	steady := startWatcher(t, rec, "steady", a)
	// far uses store b through remote, and switches to store a when b is closed.
	far := startWatcher(t, rec, "far", remote, a)
	replaced := &replacedServer{t: t, options: o, address: ports.Address(t)}
	replaced.replace()
	moving := startWatcher(t, rec, "moving", &client.Remote{URL: "http://" + replaced.address, Backoff: remote.Backoff})

	history := recordWrites(t, c.client, "/faults/things.example.com/", base)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writers := []*backgroundWriter{
		{recorder: rec, history: history, to: a, name: "a"},
		{recorder: rec, history: history, to: b, name: "b"},
	}
	for _, w := range writers {
		writing.Go(func() { w.run(ctx, 5*time.Millisecond) })
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.logMembers()
			t.Logf("%d watches of etcd lost, %d resumed: %s", counted.lost.Load(), counted.resumed.Load(),
				counted.reasons())
			t.Logf("last errors of the writers: %v; %v", writers[0].lastError(), writers[1].lastError())
		}
	})
	for range *rounds {
		for _, f := range leaderFaults {
			before := writers[0].acknowledged.Load()
			lost := counted.lost.Load()
			start := time.Now()
			heal := f.strike(c)
			rec.RecordFault(checker.Fault{Kind: f.name})
			eventually(t, f.name+": acknowledged writes",
				func() bool { return writers[0].acknowledged.Load() > before+20 })
			unavailable := time.Since(start)
			replaced.replace()
			waitForVersion(t, listwatch.Version(writers[0].last.Load()), moving)
			sleep(500 * time.Millisecond)
			heal()
			sleep(time.Second)
			c.waitUntilCaughtUp()
			t.Logf("%s: writes after %v, %d watches of etcd lost", f.name, unavailable.Round(time.Millisecond),
				counted.lost.Load()-lost)
		}
	}
	late := openThings(t, openDB(t, o))
	front.CloseClientConnections()
	front.Close()
	closing.Close()
	rec.RecordFault(checker.Fault{Kind: "store closed"})
	far.switchSource()
	old := startWatcher(t, rec, "old", late)
	sleep(300 * time.Millisecond)
	// At least two of the watchers see each write, so this number of writes also causes the number
	// of events that the requirements demand.
	eventually(t, "enough writes", func() bool {
		return writers[0].acknowledged.Load()+writers[1].acknowledged.Load() >= int64(200**rounds)
	})
	cancel()
	writing.Wait()
	last := listwatch.Version(max(writers[0].last.Load(), writers[1].last.Load()))
	page := list(t, late, listwatch.Query{})
	// The list may contain unacknowledged writes, which are newer.
	last = max(last, newestOf(page))
	rec.RecordHeal(last)
	waitForVersion(t, last, steady, far, moving, old)
	// An unacknowledged write can be applied after the list. The history must contain it if a
	// watcher has seen it.
	last = stopWatchers(last, steady, far, moving, old)
	report, err := checker.Check(history.addTo(rec, last), nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		t.Error(err)
	}
	for _, w := range []*resumingWatcher{steady, far, moving, old} {
		if _, expired := w.position(); expired > 0 {
			t.Errorf("the version of watcher %s expired %d times, want 0 without a compaction", w.name, expired)
		}
	}
	if counted.lost.Load() == 0 || counted.relisted.Load() > 0 {
		t.Errorf("got %d lost watches of etcd and %d relists, want some and none: %s", counted.lost.Load(),
			counted.relisted.Load(), counted.reasons())
	}
	t.Logf("%d events, %d failed writes, %d watches of etcd lost, %d resumed", report.Summary.Events,
		writers[0].failed.Load()+writers[1].failed.Load(), counted.lost.Load(), counted.resumed.Load())
}

func newestOf(p listwatch.Page) (v listwatch.Version) {
	for _, o := range p.Items {
		v = max(v, o.Version)
	}
	return v
}

// A single member is killed repeatedly, its watches are cut, and the history is compacted
// continuously. The version of a watcher may expire. Otherwise each watcher must see every write.
func TestCompactionStormsLoseNothingSilently(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	raw := etcdtest.Dial(t, server.URL)
	proxy := etcdtest.StartProxy(t, server.URL)
	rec := checker.NewRecorder(checker.Meta{
		Name: t.Name(), Base: 1, SharedVersions: true,
		Requirements: checker.Requirements{Writes: 200, Events: 200, Expired: 1, Relists: 1},
	})
	var counted traceCounts
	o := etcd.Options{Endpoints: []string{proxy.URL}, Prefix: "/faults", Trace: counted.trace()}
	a := openThings(t, openDB(t, o))
	o.Endpoints = []string{server.URL}
	b := openThings(t, openDB(t, o))
	cut, direct := startWatcher(t, rec, "cut", a), startWatcher(t, rec, "direct", b)
	history := recordWrites(t, raw, "/faults/things.example.com/", 1)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	writer := &backgroundWriter{recorder: rec, history: history, to: b, name: "b"}
	work.Go(func() { writer.run(ctx, time.Millisecond) })
	compactions := 0
	work.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			limited, done := context.WithTimeout(ctx, time.Second)
			if _, err := raw.Compact(limited, history.seen.Load()); err == nil {
				compactions++
			}
			done()
		}
	})
	expired := func() bool {
		_, n := cut.position()
		_, m := direct.position()
		return n+m > 0
	}
	for round := 0; round < 4**rounds || round < 100 && !expired(); round++ {
		before := writer.acknowledged.Load()
		proxy.Cut()
		server.Kill()
		rec.RecordFault(checker.Fault{Kind: "etcd killed"})
		server.Restart()
		eventually(t, "acknowledged writes", func() bool { return writer.acknowledged.Load() > before+50 })
		proxy.Cut()
		sleep(300 * time.Millisecond)
	}
	cancel()
	work.Wait()
	page := list(t, b, listwatch.Query{})
	last := max(listwatch.Version(writer.last.Load()), newestOf(page))
	rec.RecordHeal(last)
	waitForVersion(t, last, cut, direct)
	// An unacknowledged write can be applied after the list. The history must contain it if a
	// watcher has seen it.
	last = stopWatchers(last, cut, direct)
	report, err := checker.Check(history.addTo(rec, last), nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d compactions, %d events, %d failed writes, %d watches of etcd lost, %d resumed, %d relisted", compactions,
		report.Summary.Events, writer.failed.Load(),
		counted.lost.Load(), counted.resumed.Load(), counted.relisted.Load())
}
