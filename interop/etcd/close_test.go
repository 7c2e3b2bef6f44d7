package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
)

func TestCloseEndsWatchersAndRequests(t *testing.T) {
	t.Parallel()
	db, err := etcd.Open(t.Context(),
		etcd.Options{Endpoints: []string{etcdtest.StartProcess(t).URL}, Timeout: waitTimeout})
	if err != nil {
		t.Fatal(err)
	}
	c := openThings(t, db)
	o, err := c.Create(t.Context(), thing("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	// The store may acknowledge a write before it receives the event, so wait for the event.
	readEvents(t, watchAt(t, c, o.Version-1), 1)
	idle, unread, future := watchAt(t, c, o.Version), watchAt(t, c, o.Version-1), watchAt(t, c, o.Version+1000)
	ended := make(chan error, 2)
	for _, w := range []listwatch.Watcher{idle, future} {
		go func() {
			_, err := w.Next(t.Context(), make([]listwatch.Event, 1))
			ended <- err
		}()
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("watcher: got %v, want Unavailable", err)
		}
	}
	batch := make([]listwatch.Event, 2)
	if n, err := unread.Next(t.Context(), batch); n != 1 || err != nil || batch[0].Version != o.Version {
		t.Errorf("watcher with an unread event: got %d events, error %v, %+v; want version %d first",
			n, err, batch[0], o.Version)
	}
	if _, err := unread.Next(t.Context(), batch); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("watcher after its last event: got %v, want Unavailable", err)
	}
	page, err := c.List(t.Context(), listwatch.Query{Start: listwatch.StartAny})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("list from memory: got %d objects, error %v; want 1", len(page.Items), err)
	}
	for method, call := range map[string]func() error{
		"List":       func() error { _, err := c.List(t.Context(), listwatch.Query{}); return err },
		"Watch":      func() error { _, err := c.Watch(t.Context(), listwatch.Query{}); return err },
		"Get":        func() error { _, err := c.Get(t.Context(), key("a")); return err },
		"Create":     func() error { _, err := c.Create(t.Context(), thing("b", 1)); return err },
		"Collection": func() error { _, err := db.Collection(store.CollectionSpec{Kind: "Late"}); return err },
		"Ready":      func() error { return db.Ready(t.Context()) },
	} {
		if err := call(); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("%s of a closed database: got %v, want Unavailable", method, err)
		}
	}
}

// writeThings writes n objects of kind Thing below prefix.
func writeThings(t *testing.T, client *clientv3.Client, prefix string, n int) {
	t.Helper()
	const each = 100
	for i := 0; i < n; i += each {
		var ops []clientv3.Op
		for j := i; j < i+each; j++ {
			name := fmt.Sprintf("a-%05d", j)
			ops = append(ops, clientv3.OpPut(prefix+"/things.example.com/default/"+name, string(thing(name, j))))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	const objects = 3000 // enough for several pages
	server := etcdtest.StartProcess(t)
	writeThings(t, etcdtest.Dial(t, server.URL), "/load", objects)
	ctx, cancel := context.WithCancel(t.Context())
	var read int64
	db := openDB(t, etcd.Options{
		Endpoints: []string{server.URL}, Prefix: "/load", HistoryRevisions: -1,
		Trace: &etcd.Trace{
			Loading: func(_ string, done, _ int64) { read = done; cancel() },
		},
	})
	if _, err := db.CollectionContext(ctx, things); !errors.Is(err, context.Canceled) || read >= objects {
		t.Fatalf("load that is cancelled after the first page: got %v after %d objects, want context.Canceled",
			err, read)
	}
	if page := list(t, openThings(t, db), listwatch.Query{}); len(page.Items) != objects {
		t.Errorf("second load: got %d objects, want %d", len(page.Items), objects)
	}
}

func TestCloseEndsALoad(t *testing.T) {
	t.Parallel()
	const objects = 3000
	server := etcdtest.StartProcess(t)
	writeThings(t, etcdtest.Dial(t, server.URL), "/load", objects)
	var db *etcd.DB
	closed := make(chan error, 1)
	closing := false
	db, err := etcd.Open(t.Context(),
		etcd.Options{Endpoints: []string{server.URL}, Prefix: "/load", HistoryRevisions: -1, Trace: &etcd.Trace{
			Loading: func(string, int64, int64) {
				if closing {
					return
				}
				closing = true
				go func() { closed <- db.Close() }()
				n := 0
				eventually(t, "Unavailable from a closing database", func() bool {
					n++
					_, err := db.Collection(store.CollectionSpec{Kind: fmt.Sprint("Other", n)})
					return errors.Is(err, listwatch.Unavailable)
				})
			},
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection(things); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("load while the database is closed: got %v, want Unavailable", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// When a store opens a collection, it replays all events since the revision at which it has read
// the objects. The time that this takes depends on etcd, so there is no limit while events arrive.
// The second report comes without an event in between, as on a busy machine.
func TestStartWaitsWhileEventsArrive(t *testing.T) {
	t.Parallel()
	const writes = 4
	server := etcdtest.StartProcess(t)
	proxy := etcdtest.StartProxy(t, server.URL)
	client := etcdtest.Dial(t, server.URL)
	for n := range writes {
		if _, err := client.Put(t.Context(), "/load/things.example.com/default/a", string(thing("a", n))); err != nil {
			t.Fatal(err)
		}
	}
	replaying := make(chan int64, writes)
	proxy.Filter(func(*pb.WatchCreateRequest) etcdtest.Filter {
		return func(got *pb.WatchResponse, send func(*pb.WatchResponse)) {
			if len(got.Events) == 0 {
				send(got)
				return
			}
			reports := 2
			for _, e := range got.Events {
				one := clone(got)
				one.Events = []*mvccpb.Event{e}
				send(one)
				// Hold back the next event until the store has reported its progress.
				for range reports {
					select {
					case <-replaying:
					case <-t.Context().Done():
					}
				}
				reports = 1
			}
		}
	})
	var reached []int64
	db := openDB(t, etcd.Options{Endpoints: []string{proxy.URL}, Prefix: "/load", Trace: &etcd.Trace{
		Replaying: func(_ string, revision, _ int64) {
			reached = append(reached, revision)
			replaying <- revision
		},
	}})
	c, err := db.CollectionContext(t.Context(), things)
	if err != nil {
		t.Fatalf("a start with %d events that arrive slowly: %v", writes, err)
	}
	if len(reached) < 2 || !slices.IsSorted(reached) {
		t.Errorf("got progress %v, want growing revisions", reached)
	}
	if got := c.Stats(); got.Newest < writes {
		t.Errorf("got version %d after the start, want at least %d", got.Newest, writes)
	}
}
