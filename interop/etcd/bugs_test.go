package etcd

import (
	"context"
	"fmt"
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

// The watch of etcd has had bugs that broke its promises. Each test here lets them happen again, by a proxy before a real etcd, and holds what
// watchers of the store see against what was written: it must be all of it, once, in order, or the watcher must be told that its place expired.

// A scene is a store behind a proxy that can be told to behave like a bug, somebody who writes past the proxy, and a watcher.
type scene struct {
	*testing.T
	etcd    *etcdtest.Process
	client  *clientv3.Client
	proxy   *etcdtest.Proxy
	prefix  string
	rec     *checker.Recorder
	writer  *writer
	db      *etcd.DB
	things  *store.Collection
	witness *witness
	trace   counts
}

// counts is what a Trace told.
type counts struct {
	lost, resumed, relisted, repeated atomic.Int64

	mu  sync.Mutex
	why []error // guarded by mu
}

func (c *counts) hooks() *etcd.Trace {
	note := func(n *atomic.Int64, err error) {
		n.Add(1)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.why = append(c.why, err)
	}
	return &etcd.Trace{
		WatchLost:         func(_ string, err error) { note(&c.lost, err) },
		Relisted:          func(_ string, why error) { note(&c.relisted, why) },
		WatchResumed:      func(string, int64) { c.resumed.Add(1) },
		DuplicatesDropped: func(string, int64) { c.repeated.Add(1) },
	}
}

func (c *counts) reasons() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.why)
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	s := &scene{T: t, etcd: etcdtest.StartProcess(t), prefix: fmt.Sprintf("/bug-%d", prefixes.Add(1))}
	s.client = etcdtest.Dial(t, s.etcd.URL)
	s.proxy = etcdtest.StartProxy(t, s.etcd.URL)
	direct := collection(t, open(t, etcd.Options{Endpoints: []string{s.etcd.URL}, Prefix: s.prefix, HistoryRevisions: -1}))
	s.rec = checker.NewRecorder(checker.Meta{Name: t.Name(), SharedVersions: true})
	s.writer = &writer{t: t, rec: s.rec, to: s.rec.Collection(direct)}
	s.db = open(t, etcd.Options{Endpoints: []string{s.proxy.URL}, Prefix: s.prefix, Trace: s.trace.hooks(), HistoryRevisions: -1})
	s.things = collection(t, s.db)
	s.witness = follow(t, s.rec, "w", s.things)
	return s
}

// settle ends the scene: all that was written must reach the watcher.
func (s *scene) settle(last *listwatch.Object) {
	s.Helper()
	s.rec.RecordHeal(last.Version)
	sees(s, last.Version, s.witness)
	judge(s, s.rec)
	if page, err := s.things.List(s.Context(), listwatch.Query{}); err != nil || page.Version < last.Version {
		s.Errorf("a fresh list: version %d, %v; want %d or later", page.Version, err, last.Version)
	}
	s.Logf("lost %d, resumed %d, relisted %d, repeated %d: %s", s.trace.lost.Load(), s.trace.resumed.Load(), s.trace.relisted.Load(),
		s.trace.repeated.Load(), s.trace.reasons())
}

func clone(r *pb.WatchResponse) *pb.WatchResponse { return proto.Clone(r).(*pb.WatchResponse) }

// progressAt is an answer to a request for progress.
func progressAt(like *pb.WatchResponse, revision int64) *pb.WatchResponse {
	header := proto.Clone(like.Header).(*pb.ResponseHeader)
	header.Revision = revision
	return &pb.WatchResponse{Header: header, WatchId: clientv3.InvalidWatchID}
}

// 15220: "Requested watcher progress notifications are not synchronised with stream": they came before the events they spoke of.
func TestProgressBeforeEventsIsNoticedEtcd15220(t *testing.T) {
	s := newScene(t)
	s.writer.create("a")
	sees(t, 1, s.witness)
	s.proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		lied := false
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			if !lied && len(got.Events) > 0 {
				lied = true
				send(progressAt(got, got.Events[len(got.Events)-1].Kv.ModRevision))
			}
			send(got)
		}
	})
	s.proxy.Cut()
	eventually(t, "the watch is back", func() bool { return s.trace.resumed.Load() >= 2 })
	s.writer.update("a")
	s.writer.create("b")
	s.proxy.Filter(nil)
	last := s.writer.update("b")
	s.settle(last)
	if s.trace.relisted.Load() == 0 {
		t.Error("nobody noticed that progress had come before an event")
	}
}

// 15271: "Watch response traveling back in time when reconnecting member downloads snapshot from the leader".
func TestEventsFromThePastAreDroppedEtcd15271(t *testing.T) {
	s := newScene(t)
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
	s.settle(s.writer.create("a"))
	if s.trace.repeated.Load() == 0 || s.trace.relisted.Load() > 0 {
		t.Error("want events repeated, dropped, and nothing lost by it")
	}
}

// 17247: "Duplicated watch event detected in robustness test".
func TestDuplicatedEventsAreDroppedEtcd17247(t *testing.T) {
	s := newScene(t)
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
	s.settle(s.writer.delete("a"))
	if s.trace.repeated.Load() == 0 || s.trace.relisted.Load() > 0 {
		t.Error("want events repeated, dropped, and nothing lost by it")
	}
}

// 17529: "etcd watch events starvation / lost multiplexed on a single watch stream": a watcher that lagged was moved past a compaction, and nobody
// said so. Servers that have the bug are refused for their version; here is what happens where it happens all the same.
func TestEventsLostInStarvationAreNoticedEtcd17529(t *testing.T) {
	s := newScene(t)
	s.writer.create("a")
	s.writer.create("gone")
	sees(t, 1, s.witness)
	const lost = 4
	var back atomic.Bool
	var mu sync.Mutex
	dropped := 0
	s.proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !back.Load(): // nothing comes
			case len(got.Events) > 0 && dropped < lost:
				n := min(lost-dropped, len(got.Events))
				dropped += n
				if got.Events = got.Events[n:]; len(got.Events) > 0 {
					send(got)
				}
			default:
				send(got)
			}
		}
	})
	s.proxy.Cut()
	for i := range lost - 1 {
		s.writer.create(fmt.Sprint("lost-", i))
	}
	s.writer.delete("gone")
	back.Store(true)
	s.proxy.Cut()
	eventually(t, "the loss is noticed", func() bool { return s.trace.relisted.Load() > 0 })
	s.writer.create("b")
	s.settle(s.writer.update("lost-0"))
	if _, expired := s.witness.position(); expired == 0 {
		t.Error("the watcher was not told that its place expired")
	}
}

// lostDelete is a scene in which the store is away while a delete is compacted at its very revision, and etcd, when the store comes back, has
// dropped that delete.
func lostDelete(t *testing.T, hide func(e *mvccpb.Event, compacted int64) bool) {
	s := newScene(t)
	s.writer.create("kept")
	s.writer.create("deleted")
	sees(t, 1, s.witness)
	var compacted atomic.Int64
	s.proxy.Filter(func(c *pb.WatchCreateRequest) etcdtest.Filter {
		if compacted.Load() == 0 {
			return func(*pb.WatchResponse, func(*pb.WatchResponse)) {} // away: nothing comes
		}
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			kept := got.Events[:0]
			for _, e := range got.Events {
				if !hide(e, compacted.Load()) {
					kept = append(kept, e)
				}
			}
			if len(got.Events) > 0 && len(kept) == 0 {
				return
			}
			got.Events = kept
			send(got)
		}
	})
	s.proxy.Cut()
	gone := s.writer.delete("deleted")
	if _, err := s.client.Compact(t.Context(), int64(gone.Version), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	compacted.Store(int64(gone.Version))
	s.proxy.Cut()
	s.writer.create("later")
	s.settle(s.writer.update("kept"))
	if s.trace.relisted.Load() == 0 {
		t.Error("nobody noticed that a delete was lost")
	}
	if _, expired := s.witness.position(); expired == 0 {
		t.Error("the watcher was not told that its place expired")
	}
}

// 18089: "Watch dropping an event when compacting on delete".
func TestDeleteLostAtCompactionIsNoticedEtcd18089(t *testing.T) {
	lostDelete(t, func(e *mvccpb.Event, compacted int64) bool {
		return e.Type == mvccpb.Event_DELETE && e.Kv.ModRevision == compacted
	})
}

// 19179: "Missing delete event on watch opened on same revision as compaction request".
func TestDeleteLostToAWatchOpenedAtTheCompactionIsNoticedEtcd19179(t *testing.T) {
	lostDelete(t, func(e *mvccpb.Event, compacted int64) bool {
		return e.Type == mvccpb.Event_DELETE && e.Kv.ModRevision <= compacted
	})
}

// 20221: "Watch on future revision might receive old events or notifications, happens when client connects to multiple members".
func TestOldEventsAndNotificationsForAFutureRevisionAreDroppedEtcd20221(t *testing.T) {
	s := newScene(t)
	s.writer.create("a")
	for range 5 {
		s.writer.update("a")
	}
	before := s.writer.update("a")
	sees(t, before.Version, s.witness)
	var old []*mvccpb.Event
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	history := s.client.Watch(ctx, s.prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(int64(before.Version)-3))
	for len(old) < 4 {
		got, ok := <-history
		if !ok {
			t.Fatal("etcd does not tell its history")
		}
		for _, e := range got.Events {
			old = append(old, (*mvccpb.Event)(e))
		}
	}
	s.proxy.Filter(func(c *pb.WatchCreateRequest) etcdtest.Filter {
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			send(got)
			if got.Created {
				// The member lags: to it, the revision that was asked for is in the future.
				send(progressAt(got, c.StartRevision-4))
				past := clone(got)
				past.Created, past.Events = false, old
				send(past)
				send(progressAt(got, c.StartRevision-1))
			}
		}
	})
	s.proxy.Cut()
	eventually(t, "the watch is back", func() bool { return s.trace.repeated.Load() > 0 })
	s.settle(s.writer.update("a"))
	if s.trace.relisted.Load() > 0 {
		t.Error("old events made the store list again")
	}
}
