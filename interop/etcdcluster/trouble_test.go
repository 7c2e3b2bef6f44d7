package etcdcluster

import (
	"context"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
)

// trouble lets each kind of it happen once, in any order.
func (l *lane) trouble() {
	all := []struct {
		kind string
		do   func()
	}{
		{"leader-kill", l.killLeader},
		{"leader-pause", l.pauseLeader},
		{"leader-cut", l.cutLeader},
		{"member-cut", l.cutMember},
		{"no-quorum", l.pauseQuorum},
		{"storm", l.storm},
		{"server-kill", l.killServer},
		{"server-pause", l.pauseServer},
		{"server-cut", l.cutServer},
		{"server-behind", l.leaveServerBehind},
	}
	for _, i := range l.rand.Perm(len(all)) {
		l.wait(400 * time.Millisecond)
		l.rec.RecordFault(checker.Fault{Kind: all[i].kind})
		begun := time.Now()
		all[i].do()
		l.Logf("%v %s", time.Since(begun).Round(time.Millisecond), all[i].kind)
		// A compaction in every quiet moment, so that whoever comes back late finds history gone.
		l.compactNow()
	}
}

// wait lets a random time pass, up to most.
func (l *lane) wait(most time.Duration) {
	if !rest(l.Context(), l.rand, most) {
		l.Fatal(context.Cause(l.Context()))
	}
}

// linger makes what is wrong last: in long runs now and then for longer than anybody waits for a sign of life.
func (l *lane) linger() {
	l.wait(time.Second)
	if *laneFor >= time.Minute && l.rand.IntN(5) == 0 {
		l.wait(30 * time.Second)
	}
}

// killLeader kills the leader, waits until another one leads, and starts the member again on its data.
func (l *lane) killLeader() {
	old := l.leader(-1)
	l.kill(old)
	l.leader(old)
	l.linger()
	l.restart(old)
}

// pauseLeader stops the leader, which believes that it leads when it goes on.
func (l *lane) pauseLeader() {
	old := l.leader(-1)
	l.pause(old)
	l.leader(old)
	l.linger()
	l.resume(old)
}

// cutLeader cuts the leader off from the other members; servers reach all of them.
func (l *lane) cutLeader() { l.cut(l.leader(-1)) }

// cutMember cuts one off that does not lead.
func (l *lane) cutMember() { l.cut((l.leader(-1) + 1 + l.rand.IntN(2)) % len(l.members)) }

func (l *lane) cut(i int) {
	l.network.cutOff(i)
	l.leader(i)
	l.isolated(i)
	l.linger()
	l.network.restore(l.rand.IntN(2) == 0)
}

// pauseQuorum stops two members, so that nobody can say what the newest state is.
func (l *lane) pauseQuorum() {
	first := l.leader(-1)
	second := (first + 1) % len(l.members)
	l.pause(first)
	l.pause(second)
	l.refuse(l.servers...)
	l.resume(second)
	l.resume(first)
}

// killServer kills a server and starts it again, while clients of it go to the other one.
func (l *lane) killServer() {
	s := l.anyServer()
	s.kill()
	l.wait(500 * time.Millisecond)
	s.start()
}

// pauseServer stops a server, whose clients and whose etcd go on.
func (l *lane) pauseServer() {
	s := l.anyServer()
	s.signal(syscall.SIGSTOP)
	l.awaitWrites(5)
	l.linger()
	s.signal(syscall.SIGCONT)
}

func (l *lane) anyServer() *server { return l.servers[l.rand.IntN(len(l.servers))] }

// awaitWrites waits until about n more writes are acknowledged: that is how many versions later than etcd is now, where more may have been done than
// anybody was told.
func (l *lane) awaitWrites(n listwatch.Version) {
	l.Helper()
	goal := listwatch.Version(l.revision()) + n
	l.eventually("writes go on", func() bool { return l.desk.acknowledged() >= goal })
}

// cutServer cuts a server off from etcd, while the other one goes on.
func (l *lane) cutServer() {
	s := l.anyServer()
	s.cutOff()
	l.refuse(s)
	l.linger()
	s.restore(l.rand.IntN(2) == 0)
	l.ready(s)
}

// leaveServerBehind compacts what a server has not seen, which has to begin anew then, and its watchers with it. What was on its way when the
// server was cut off may reach it still, so that it is not behind: then it is cut off again.
func (l *lane) leaveServerBehind() {
	s := l.anyServer()
	const tries = 5
	for range tries {
		if l.leftBehind(s) {
			return
		}
	}
	l.Errorf("server %s was cut off %d times while etcd compacted, and never listed again", s.name, tries)
}

// leftBehind is one try; it reports whether the server had to list again.
func (l *lane) leftBehind(s *server) bool {
	relisted, resumed := s.count("relisted"), s.count("resumed")
	s.cutOff()
	l.awaitWrites(10)
	l.compactNow()
	l.forgotten(l.compacted)
	s.restore(false)
	l.eventually("server "+s.name+" lists again or goes on", func() bool {
		return s.count("relisted") > relisted || s.count("resumed") > resumed
	})
	l.ready(s)
	return s.count("relisted") > relisted
}

// refuse makes sure that servers, which can't know what the newest state is, say so, and serve what they have to those who take anything.
func (l *lane) refuse(all ...*server) {
	l.Helper()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { l.refusesReads(s) })
		wg.Go(func() {
			code, text := s.readyz(l.Context())
			if code != http.StatusServiceUnavailable || text == "" {
				l.Errorf("/readyz of server %s says %d %q without etcd", s.name, code, text)
			}
			s.note("not ready", text)
		})
	}
	wg.Wait()
}

func (l *lane) refusesReads(s *server) {
	l.Helper()
	remote := &client.Remote{URL: s.base + path}
	defer remote.Close()
	page, err := remote.List(l.Context(), listwatch.Query{})
	switch code := listwatch.CodeOf(err); {
	case err == nil:
		l.Errorf("server %s answers a fresh read, at version %d, without etcd", s.name, page.Version)
	case code != listwatch.NotYet && code != listwatch.TooSlow:
		l.Errorf("server %s answers a fresh read without etcd by %v, want 504 or 429", s.name, err)
	default:
		s.note("fresh read refused", err.Error())
	}
	began := l.rec.Elapsed()
	q := listwatch.Query{Start: listwatch.Any}
	if page, err = remote.List(l.Context(), q); err != nil {
		l.Errorf("server %s without etcd, asked for any state: %v", s.name, err)
		return
	}
	l.rec.RecordList("", began, q, page)
}

// storm compacts again and again, while watchers resume and one server starts.
func (l *lane) storm() {
	s := l.anyServer()
	s.kill()
	for range 10 {
		l.compactNow()
		l.wait(100 * time.Millisecond)
	}
	s.start()
	for range 10 {
		l.compactNow()
		l.wait(100 * time.Millisecond)
	}
}

// compactNow makes etcd forget everything before its newest revision but what the scribe has read. A server that starts, or that has not seen it,
// has nothing from before; others may.
func (l *lane) compactNow() {
	l.Helper()
	if err := l.scribe.catchUp(); err != nil {
		l.Fatal(err)
	}
	at := l.scribe.up
	if at == l.compacted {
		return
	}
	l.compacted = at
	// It counts as done from the end only, but may be done at any time, also where nobody says so.
	l.rec.RecordCompaction(func() listwatch.Version { return listwatch.Version(at) }, func() {
		if l.compact(at) {
			l.rec.RecordFault(checker.Fault{Kind: "compaction"})
		}
	})
}
