package etcd

import (
	"context"
	"flag"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/listwatch/listwatch/watchserver"
)

var rounds = flag.Int("rounds", 1, "how often each fault strikes")

// A cluster is three members of etcd, two servers over them, and what they are put through.
type cluster struct {
	*testing.T
	peers   *etcdtest.Peers
	members []*etcdtest.Process
	client  *clientv3.Client
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, peers: etcdtest.NewPeers(t)}
	c.members = etcdtest.StartCluster(t, 3, c.peers.Via)
	c.client = etcdtest.Dial(t, c.urls()...)
	return c
}

func (c *cluster) urls() (urls []string) {
	for _, m := range c.members {
		urls = append(urls, m.URL)
	}
	return urls
}

// leader returns the number and the ID of the leader, as the members that answer see it.
func (c *cluster) leader() (number int, id string) {
	c.Helper()
	eventually(c, "there is a leader", func() bool {
		for i, m := range c.members {
			ctx, cancel := context.WithTimeout(c.Context(), time.Second)
			status, err := c.client.Status(ctx, m.URL)
			cancel()
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				number, id = i, strconv.FormatUint(status.Leader, 16)
				return true
			}
		}
		return false
	})
	return number, id
}

// wait passes time, in which a fault does its work.
func wait(d time.Duration) { <-time.After(d) }

// faults are what can happen to the leader of three members; and then each member dies in its turn, so that every watch has its member lost.
var faults = []struct {
	name   string
	strike func(c *cluster) (heal func())
}{
	{"leader killed", func(c *cluster) func() {
		i, _ := c.leader()
		c.members[i].Kill()
		return c.members[i].Restart
	}},
	{"leader paused", func(c *cluster) func() {
		i, _ := c.leader()
		c.members[i].Pause()
		return c.members[i].Resume
	}},
	{"leader cut off from its peers", func(c *cluster) func() {
		i, id := c.leader()
		c.peers.Cut(id, i)
		return func() {
			if ended, refused := c.peers.Heal(); ended == 0 || refused == 0 {
				c.Errorf("the leader was not cut off: %d connections ended, %d refused", ended, refused)
			}
		}
	}},
	{"every member killed in turn", func(c *cluster) func() {
		for _, m := range c.members {
			c.leader() // so that a majority is there before the next one dies
			m.Kill()
			wait(300 * time.Millisecond)
			m.Restart()
		}
		return func() {}
	}},
}

// Two servers over three members, whose leader is killed, paused and cut off; one server is killed, too. Nothing is compacted, so no watcher may be
// told that its place expired, and none may notice anything but silence.
func TestWatchersNoticeNothingOfWhatHappensToTheLeader(t *testing.T) {
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
	var counted counts
	o := etcd.Options{Endpoints: c.urls(), Prefix: "/lane", Trace: counted.hooks()}
	a := collection(t, open(t, o))
	closing, err := etcd.Open(t.Context(), o) // this one is killed
	if err != nil {
		t.Fatal(err)
	}
	b := collection(t, closing)
	front := httptest.NewServer(&watchserver.Server{Source: b})
	remote := &client.Remote{URL: front.URL, Backoff: listwatch.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}}
	steady := follow(t, rec, "steady", a)
	far := follow(t, rec, "far", remote, a) // goes on at a when b is gone

	what := newTruth(t, c.client, "/lane/things.example.com/", base)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writers := []*scribbler{{rec: rec, truth: what, to: a, name: "a"}, {rec: rec, truth: what, to: b, name: "b"}}
	for _, w := range writers {
		writing.Go(func() { w.run(ctx, 5*time.Millisecond) })
	}
	for range *rounds {
		for _, f := range faults {
			before := writers[0].oks.Load()
			lost := counted.lost.Load()
			began := time.Now()
			heal := f.strike(c)
			rec.RecordFault(checker.Fault{Kind: f.name})
			eventually(t, f.name+": writes are acknowledged again", func() bool { return writers[0].oks.Load() > before+20 })
			back := time.Since(began)
			wait(500 * time.Millisecond)
			heal()
			wait(time.Second)
			t.Logf("%s: writes again after %v, %d watches of etcd lost", f.name, back.Round(time.Millisecond), counted.lost.Load()-lost)
		}
	}
	late := collection(t, open(t, o)) // a server that starts only now resumes everybody
	front.CloseClientConnections()
	front.Close()
	closing.Close()
	rec.RecordFault(checker.Fault{Kind: "server killed"})
	far.hop()
	old := follow(t, rec, "old", late)
	wait(300 * time.Millisecond)
	cancel()
	writing.Wait()
	last := listwatch.Version(max(writers[0].last.Load(), writers[1].last.Load()))
	page, err := late.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	// Writes that nobody was told of may have come later.
	last = max(last, newestOf(page))
	rec.RecordHeal(last)
	sees(t, last, steady, far, old)
	report, err := checker.Check(what.complete(rec, last), nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		t.Error(err)
	}
	for _, w := range []*witness{steady, far, old} {
		if _, expired := w.position(); expired > 0 {
			t.Errorf("%s was told %d times that its place expired, and nothing was compacted", w.name, expired)
		}
	}
	if counted.lost.Load() == 0 || counted.relisted.Load() > 0 {
		t.Errorf("%d watches of etcd were lost and %d collections listed again, want some and none: %s", counted.lost.Load(), counted.relisted.Load(), counted.reasons())
	}
	t.Logf("%d events, %d failed writes, %d watches of etcd lost, %d resumed", report.Summary.Events, writers[0].errs.Load()+writers[1].errs.Load(), counted.lost.Load(), counted.resumed.Load())
}

func newestOf(p listwatch.Page) (v listwatch.Version) {
	for _, o := range p.Items {
		v = max(v, o.Version)
	}
	return v
}

// One member that is killed again and again, under a storm of compactions, with its watches cut: watchers may be told that their place expired, and
// otherwise miss nothing.
func TestCompactionStormsOverAnEtcdThatIsKilledLoseNothingInSilence(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	raw := etcdtest.Dial(t, server.URL)
	proxy := etcdtest.StartProxy(t, server.URL)
	rec := checker.NewRecorder(checker.Meta{
		Name: t.Name(), Base: 1, SharedVersions: true, Requirements: checker.Requirements{Writes: 200, Events: 200, Expired: 1, Relists: 1},
	})
	var counted counts
	o := etcd.Options{Endpoints: []string{proxy.URL}, Prefix: "/lane", Trace: counted.hooks()}
	a := collection(t, open(t, o))
	o.Endpoints = []string{server.URL}
	b := collection(t, open(t, o))
	cut, direct := follow(t, rec, "cut", a), follow(t, rec, "direct", b)
	what := newTruth(t, raw, "/lane/things.example.com/", 1)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	writer := &scribbler{rec: rec, truth: what, to: b, name: "b"}
	work.Go(func() { writer.run(ctx, time.Millisecond) })
	compactions := 0
	work.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			limited, done := context.WithTimeout(ctx, time.Second)
			if _, err := raw.Compact(limited, what.seen.Load()); err == nil {
				compactions++
			}
			done()
		}
	})
	for range 4 * *rounds {
		before := writer.oks.Load()
		proxy.Cut()
		server.Kill()
		rec.RecordFault(checker.Fault{Kind: "etcd killed"})
		server.Restart()
		eventually(t, "writes are acknowledged again", func() bool { return writer.oks.Load() > before+50 })
		proxy.Cut()
		wait(300 * time.Millisecond)
	}
	cancel()
	work.Wait()
	page, err := b.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	last := max(listwatch.Version(writer.last.Load()), newestOf(page))
	rec.RecordHeal(last)
	sees(t, last, cut, direct)
	report, err := checker.Check(what.complete(rec, last), nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d compactions, %d events, %d failed writes, %d watches of etcd lost, %d resumed, %d relisted", compactions, report.Summary.Events, writer.errs.Load(),
		counted.lost.Load(), counted.resumed.Load(), counted.relisted.Load())
}
