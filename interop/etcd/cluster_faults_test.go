package etcd

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

// injectFaults injects a fault of each kind, in random order.
func (l *clusterTest) injectFaults() {
	all := []struct {
		kind string
		do   func()
	}{
		{"leader-kill", l.killLeader},
		{"leader-pause", l.pauseLeader},
		{"leader-cut", l.cutLeader},
		{"member-cut", l.cutMember},
		{"no-quorum", l.pauseQuorum},
		{"storm", l.compactRepeatedly},
		{"server-kill", l.killServer},
		{"server-pause", l.pauseServer},
		{"server-cut", l.cutServer},
		{"server-behind", l.leaveServerBehind},
	}
	for _, i := range l.rand.Perm(len(all)) {
		l.pause(400 * time.Millisecond)
		l.recorder.RecordFault(checker.Fault{Kind: all[i].kind})
		start := time.Now()
		all[i].do()
		l.Logf("%v %s", time.Since(start).Round(time.Millisecond), all[i].kind)
		// Compact after each fault, so that watchers that resume late find that the history
		// was compacted.
		l.compactHistory()
	}
}

// pause sleeps for a random time up to limit.
func (l *clusterTest) pause(limit time.Duration) {
	if !sleepRandomly(l.Context(), l.rand, limit) {
		l.Fatal(context.Cause(l.Context()))
	}
}

// linger waits for some time while a fault is active. In long runs it sometimes waits longer
// than all idle timeouts.
func (l *clusterTest) linger() {
	l.pause(time.Second)
	if *faultTime >= time.Minute && l.rand.IntN(5) == 0 {
		l.pause(30 * time.Second)
	}
}

// killLeader kills the leader, waits for a new leader, and restarts the member with its data.
func (l *clusterTest) killLeader() {
	old := l.leader(-1)
	l.killMember(old)
	l.leader(old)
	l.linger()
	l.restartMember(old)
}

// pauseLeader pauses the leader. When the old leader resumes, it still considers itself the
// leader.
func (l *clusterTest) pauseLeader() {
	old := l.leader(-1)
	l.pauseMember(old)
	l.leader(old)
	l.linger()
	l.resumeMember(old)
}

// cutLeader disconnects the leader from the other members. The servers still reach all members.
func (l *clusterTest) cutLeader() { l.cutOffMember(l.leader(-1)) }

// cutMember disconnects a member that is not the leader.
func (l *clusterTest) cutMember() {
	l.cutOffMember((l.leader(-1) + 1 + l.rand.IntN(2)) % len(l.members))
}

func (l *clusterTest) cutOffMember(i int) {
	l.network.cutOff(i)
	l.leader(i)
	l.waitUntilIsolated(i)
	l.linger()
	l.network.restore(l.rand.IntN(2) == 0)
}

// pauseQuorum pauses two of the three members, so that consistent reads are impossible.
func (l *clusterTest) pauseQuorum() {
	first := l.leader(-1)
	second := (first + 1) % len(l.members)
	l.pauseMember(first)
	l.pauseMember(second)
	l.wantRefusals(l.servers...)
	l.resumeMember(second)
	l.resumeMember(first)
}

// killServer kills a server and restarts it. Its clients use the other server meanwhile.
func (l *clusterTest) killServer() {
	s := l.anyServer()
	s.kill()
	l.pause(500 * time.Millisecond)
	s.start()
}

// pauseServer pauses a server, while its clients and etcd continue.
func (l *clusterTest) pauseServer() {
	s := l.anyServer()
	s.signal(syscall.SIGSTOP)
	l.waitForWrites(5)
	l.linger()
	s.signal(syscall.SIGCONT)
}

func (l *clusterTest) anyServer() *serverProcess { return l.servers[l.rand.IntN(len(l.servers))] }

// waitForWrites waits until a client has received the response to a write whose version is at least
// n higher than the revision of etcd at the start of the call.
func (l *clusterTest) waitForWrites(n listwatch.Version) {
	l.Helper()
	goal := listwatch.Version(l.revision()) + n
	eventually(l, "acknowledged writes", func() bool { return l.clients.newestAcknowledged() >= goal })
}

// cutServer disconnects a server from etcd, while the other server continues.
func (l *clusterTest) cutServer() {
	s := l.anyServer()
	s.cutOff()
	l.wantRefusals(s)
	l.linger()
	s.restore(l.rand.IntN(2) == 0)
	l.waitUntilReady(s)
}

// leaveServerBehind compacts events that a disconnected server has not seen. The server
// must then list again, and the versions of its watchers expire. The server may still
// receive data that was in transit when it was disconnected, and then does not lag behind
// the compaction. In that case the test disconnects it again.
func (l *clusterTest) leaveServerBehind() {
	s := l.anyServer()
	const attempts = 50
	for range attempts {
		if l.tryToLeaveBehind(s) {
			return
		}
	}
	l.Errorf("server %s was disconnected %d times during a compaction, but never listed again", s.name, attempts)
}

// tryToLeaveBehind disconnects s during a compaction. It reports whether s had to list again.
func (l *clusterTest) tryToLeaveBehind(s *serverProcess) bool {
	relisted, resumed := s.count("relisted"), s.count("resumed")
	s.cutOff()
	l.waitForWrites(10)
	l.compactHistory()
	l.waitForCompaction(l.compacted)
	s.restore(false)
	eventually(l, "relist or resume of server "+s.name, func() bool {
		return s.count("relisted") > relisted || s.count("resumed") > resumed
	})
	l.waitUntilReady(s)
	return s.count("relisted") > relisted
}

// wantRefusals checks servers without a connection to etcd. They must refuse consistent reads and
// report that they are not ready, but still serve reads that accept any version.
func (l *clusterTest) wantRefusals(all ...*serverProcess) {
	l.Helper()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { l.wantRefusedRead(s) })
		wg.Go(func() {
			code, text := s.readyz(l.Context())
			if code != http.StatusServiceUnavailable || text == "" {
				l.Errorf("/readyz of server %s without etcd: got %d %q, want 503 and a reason", s.name, code, text)
			}
			s.note("not ready", text)
		})
	}
	wg.Wait()
}

// wantRefusedRead checks that s, which has no connection to etcd, refuses a consistent list and
// serves a list that accepts any version.
func (l *clusterTest) wantRefusedRead(s *serverProcess) {
	l.Helper()
	remote := &client.Remote{URL: s.directURL + collectionPath}
	defer remote.Close()
	page, err := remote.List(l.Context(), listwatch.Query{})
	switch code := listwatch.CodeOf(err); {
	case err == nil:
		l.Errorf("consistent list at server %s without etcd: got version %d, want an error", s.name, page.Version)
	case code != listwatch.NotYet && code != listwatch.TooSlow:
		l.Errorf("consistent list at server %s without etcd: got %v, want 504 or 429", s.name, err)
	default:
		s.note("read refused", err.Error())
	}
	began := l.recorder.Elapsed()
	q := listwatch.Query{Start: listwatch.StartAny}
	if page, err = remote.List(l.Context(), q); err != nil {
		l.Errorf("list of any version at server %s without etcd: %v", s.name, err)
		return
	}
	l.recorder.RecordList("", began, q, page)
}

// compactRepeatedly compacts many times, while watchers resume and one server starts.
func (l *clusterTest) compactRepeatedly() {
	s := l.anyServer()
	s.kill()
	for range 10 {
		l.compactHistory()
		l.pause(100 * time.Millisecond)
	}
	s.start()
	for range 10 {
		l.compactHistory()
		l.pause(100 * time.Millisecond)
	}
}

// compactHistory compacts all revisions that the recorder has read. After that, a server that
// starts, or that has not read these revisions yet, cannot read them from etcd.
func (l *clusterTest) compactHistory() {
	l.Helper()
	if err := l.writes.catchUp(); err != nil {
		l.Fatal(err)
	}
	revision := l.writes.revision
	if revision == l.compacted {
		return
	}
	l.compacted = revision
	// The compaction is recorded even if etcd does not acknowledge it, because it may take effect
	// later.
	l.recorder.RecordCompaction(func() listwatch.Version { return listwatch.Version(revision) }, func() {
		if l.compact(revision) == nil {
			l.recorder.RecordFault(checker.Fault{Kind: "compaction"})
		}
	})
}
