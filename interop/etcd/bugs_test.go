package etcd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
)

// etcd's watch has had bugs that broke its guarantees. Each of these tests reproduces one
// of them with a proxy in front of a real etcd, and checks the watchers of the store. A
// watcher must either see every write once and in order, or its version must expire. The
// name of a test ends with the number of the issue in etcd's repository.

// A bugTest consists of a store behind a proxy that can reproduce a bug, a writer that
// bypasses the proxy, and a watcher of the store.
type bugTest struct {
	*testing.T
	etcd     *etcdtest.Process
	client   *clientv3.Client
	proxy    *etcdtest.Proxy
	prefix   string
	recorder *checker.Recorder
	writer   *recordedWriter
	db       *etcd.DB
	things   *store.Collection
	watcher  *resumingWatcher
	trace    traceCounts
}

// traceCounts counts the calls of the functions of an [etcd.Trace].
type traceCounts struct {
	lost, resumed, relisted, duplicates atomic.Int64

	mu     sync.Mutex
	errors []error // guarded by mu
}

func (c *traceCounts) trace() *etcd.Trace {
	note := func(n *atomic.Int64, err error) {
		n.Add(1)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errors = append(c.errors, err)
	}
	return &etcd.Trace{
		WatchLost:         func(_ string, err error) { note(&c.lost, err) },
		Relisted:          func(_ string, why error) { note(&c.relisted, why) },
		WatchResumed:      func(string, int64) { c.resumed.Add(1) },
		DuplicatesDropped: func(string, int64) { c.duplicates.Add(1) },
	}
}

func (c *traceCounts) reasons() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.errors)
}

func newBugTest(t *testing.T) *bugTest {
	t.Helper()
	t.Parallel()
	s := &bugTest{T: t, etcd: etcdtest.StartProcess(t), prefix: fmt.Sprintf("/bug-%d", prefixes.Add(1))}
	s.client = etcdtest.Dial(t, s.etcd.URL)
	s.proxy = etcdtest.StartProxy(t, s.etcd.URL)
	direct := openThings(t,
		openDB(t, etcd.Options{Endpoints: []string{s.etcd.URL}, Prefix: s.prefix, HistoryRevisions: -1}))
	s.recorder = checker.NewRecorder(checker.Meta{Name: t.Name(), SharedVersions: true})
	s.writer = &recordedWriter{t: t, recorder: s.recorder, to: s.recorder.Collection(direct)}
	s.db = openDB(t, etcd.Options{
		Endpoints: []string{s.proxy.URL}, Prefix: s.prefix, Trace: s.trace.trace(),
		HistoryRevisions: -1,
	})
	s.things = openThings(t, s.db)
	s.watcher = startWatcher(t, s.recorder, "w", s.things)
	return s
}

// check waits until the watcher has seen the last write, and checks the recorded history.
func (b *bugTest) check(last *listwatch.Object) {
	b.Helper()
	b.recorder.RecordHeal(last.Version)
	waitForVersion(b, last.Version, b.watcher)
	checkHistory(b, b.recorder)
	if page := list(b, b.things, listwatch.Query{}); page.Version < last.Version {
		b.Errorf("list: got version %d, want version %d or a newer one", page.Version, last.Version)
	}
	b.Logf("%d watches lost, %d resumed, %d relists, %d duplicates dropped: %s", b.trace.lost.Load(),
		b.trace.resumed.Load(), b.trace.relisted.Load(),
		b.trace.duplicates.Load(), b.trace.reasons())
}

func clone(r *pb.WatchResponse) *pb.WatchResponse { return proto.Clone(r).(*pb.WatchResponse) }

// progressAt returns a progress notification for the given revision. The other header fields are
// the same as in r.
func progressAt(r *pb.WatchResponse, revision int64) *pb.WatchResponse {
	header := proto.Clone(r.Header).(*pb.ResponseHeader)
	header.Revision = revision
	return &pb.WatchResponse{Header: header, WatchId: clientv3.InvalidWatchID}
}

// etcd issue 15220: "Requested watcher progress notifications are not synchronised with stream".
// etcd sent notifications before the events that they cover.
func TestProgressBeforeEventsIsNoticedEtcd15220(t *testing.T) {
	s := newBugTest(t)
	waitForVersion(t, s.writer.create("a").Version, s.watcher)
	s.proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		sent := false
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			if !sent && len(got.Events) > 0 {
				sent = true
				send(progressAt(got, got.Events[len(got.Events)-1].Kv.ModRevision))
			}
			send(got)
		}
	})
	s.proxy.Cut()
	eventually(t, "resumed watch", func() bool { return s.trace.resumed.Load() >= 2 })
	s.writer.update("a")
	s.writer.create("b")
	s.proxy.Filter(nil)
	last := s.writer.update("b")
	s.check(last)
	if s.trace.relisted.Load() == 0 {
		t.Error("the store did not detect a progress notification before its event")
	}
}

// etcd issue 15271: "Watch response traveling back in time when reconnecting member downloads
// snapshot from the leader".
func TestEventsFromThePastAreDroppedEtcd15271(t *testing.T) {
	s := newBugTest(t)
	var mu sync.Mutex
	var old []*mvccpb.Event
	s.proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			mu.Lock()
			defer mu.Unlock()
			send(got)
			if old = append(old, got.Events...); len(old) > 3 && len(got.Events) > 0 {
				back := clone(got)
				back.Events = old
				send(back)
			}
		}
	})
	s.proxy.Cut()
	s.writer.create("a")
	for range 10 {
		s.writer.update("a")
	}
	s.writer.delete("a")
	s.check(s.writer.create("a"))
	if s.trace.duplicates.Load() == 0 || s.trace.relisted.Load() > 0 {
		t.Errorf("got %d duplicates dropped and %d relists, want some duplicates and no relist",
			s.trace.duplicates.Load(), s.trace.relisted.Load())
	}
}

// etcd issue 17247: "Duplicated watch event detected in robustness test".
func TestDuplicatedEventsAreDroppedEtcd17247(t *testing.T) {
	s := newBugTest(t)
	s.proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			if n := len(got.Events); n > 0 {
				got.Events = append(got.Events, got.Events[n-1])
				send(clone(got))
			}
			send(got)
		}
	})
	s.proxy.Cut()
	s.writer.create("a")
	for range 20 {
		s.writer.update("a")
	}
	s.check(s.writer.delete("a"))
	if s.trace.duplicates.Load() == 0 || s.trace.relisted.Load() > 0 {
		t.Errorf("got %d duplicates dropped and %d relists, want some duplicates and no relist",
			s.trace.duplicates.Load(), s.trace.relisted.Load())
	}
}

// etcd issue 17529: "etcd watch events starvation / lost multiplexed on a single watch stream".
// etcd silently moved a lagging watcher past a compaction. The store refuses to use etcd versions
// with this bug, so the proxy reproduces the bug in front of a fixed version. The store must notice
// the lost events.
func TestEventsLostInStarvationAreNoticedEtcd17529(t *testing.T) {
	s := newBugTest(t)
	s.writer.create("a")
	waitForVersion(t, s.writer.create("deleted").Version, s.watcher)
	var lastLost atomic.Int64
	s.proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		if lastLost.Load() == 0 {
			return dropAll
		}
		return hideEvents(func(e *mvccpb.Event) bool { return e.Kv.ModRevision <= lastLost.Load() })
	})
	s.proxy.Cut()
	for i := range 3 {
		s.writer.create(fmt.Sprint("lost-", i))
	}
	lastLost.Store(int64(s.writer.delete("deleted").Version))
	s.proxy.Cut()
	eventually(t, "relist after the loss", func() bool { return s.trace.relisted.Load() > 0 })
	s.writer.create("b")
	s.check(s.writer.update("lost-0"))
	if _, expired := s.watcher.position(); expired == 0 {
		t.Error("the watcher's version did not expire")
	}
}

// dropAll is a Filter that drops all responses.
func dropAll(*pb.WatchResponse, func(*pb.WatchResponse)) {}

// hideEvents returns a Filter that drops the events for which hide returns true.
func hideEvents(hide func(*mvccpb.Event) bool) etcdtest.Filter {
	return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
		all := len(got.Events)
		got.Events = slices.DeleteFunc(got.Events, hide)
		if all == 0 || len(got.Events) > 0 {
			send(got)
		}
	}
}

// testLostDelete compacts the history at the revision of a delete while the store is
// disconnected. When the store reconnects, the proxy hides the delete.
func testLostDelete(t *testing.T, hide func(e *mvccpb.Event, compacted int64) bool) {
	s := newBugTest(t)
	s.writer.create("kept")
	waitForVersion(t, s.writer.create("deleted").Version, s.watcher)
	var compacted atomic.Int64
	s.proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		if compacted.Load() == 0 {
			return dropAll
		}
		return hideEvents(func(e *mvccpb.Event) bool { return hide(e, compacted.Load()) })
	})
	s.proxy.Cut()
	deleted := s.writer.delete("deleted")
	if _, err := s.client.Compact(t.Context(), int64(deleted.Version), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	compacted.Store(int64(deleted.Version))
	s.proxy.Cut()
	s.writer.create("later")
	s.check(s.writer.update("kept"))
	if s.trace.relisted.Load() == 0 {
		t.Error("the store did not detect that a delete was lost")
	}
	if _, expired := s.watcher.position(); expired == 0 {
		t.Error("the watcher's version did not expire")
	}
}

// etcd issue 18089: "Watch dropping an event when compacting on delete".
func TestDeleteLostAtCompactionIsNoticedEtcd18089(t *testing.T) {
	testLostDelete(t, func(e *mvccpb.Event, compacted int64) bool {
		return e.Type == mvccpb.Event_DELETE && e.Kv.ModRevision == compacted
	})
}

// etcd issue 19179: "Missing delete event on watch opened on same revision as compaction request".
func TestDeleteLostAtWatchStartIsNoticedEtcd19179(t *testing.T) {
	testLostDelete(t, func(e *mvccpb.Event, compacted int64) bool {
		return e.Type == mvccpb.Event_DELETE && e.Kv.ModRevision <= compacted
	})
}

// etcd issue 20221: "Watch on future revision might receive old events or notifications, happens
// when client connects to multiple members".
func TestOldEventsAreDroppedEtcd20221(t *testing.T) {
	s := newBugTest(t)
	s.writer.create("a")
	for range 5 {
		s.writer.update("a")
	}
	before := s.writer.update("a")
	waitForVersion(t, before.Version, s.watcher)
	var old []*mvccpb.Event
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	history := s.client.Watch(ctx, s.prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(int64(before.Version)-3))
	for len(old) < 4 {
		got, ok := <-history
		if !ok {
			t.Fatal("the watch of etcd ended before the old events")
		}
		for _, e := range got.Events {
			old = append(old, (*mvccpb.Event)(e))
		}
	}
	s.proxy.Filter(func(c *pb.WatchCreateRequest) etcdtest.Filter {
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			send(got)
			if got.Created {
				// With the real bug, a lagging member of etcd, which had not reached the requested
				// revision, sent these responses.
				send(progressAt(got, c.StartRevision-4))
				stale := clone(got)
				stale.Created, stale.Events = false, old
				send(stale)
				send(progressAt(got, c.StartRevision-1))
			}
		}
	})
	s.proxy.Cut()
	eventually(t, "dropped duplicates", func() bool { return s.trace.duplicates.Load() > 0 })
	s.check(s.writer.update("a"))
	if s.trace.relisted.Load() > 0 {
		t.Error("old events caused a relist")
	}
}
