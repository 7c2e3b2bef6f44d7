package checker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A recordedStore is a memory store whose writes are recorded.
type recordedStore struct {
	db       *memory.DB
	things   *store.Collection
	recorder *Recorder
	writes   *RecordedCollection
}

func newRecordedStore(t testing.TB) *recordedStore {
	t.Helper()
	db := memory.Open(memory.Options{History: listwatch.Retention{Age: -1, Bytes: -1}})
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	rec := NewRecorder(Meta{Name: t.Name(), Base: db.Version(), AllCompactionsRecorded: true, MustExpire: true})
	return &recordedStore{db, things, rec, rec.Collection(things)}
}

func (r *recordedStore) put(t testing.TB, name, tier string, n int) {
	t.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"tier":%q}},"n":%d}`, name, tier, n)
	_, err := r.writes.Create(t.Context(), data)
	if errors.Is(err, listwatch.AlreadyExists) {
		_, err = r.writes.Update(t.Context(), listwatch.Key{Name: name}, listwatch.Preconditions{},
			func(*listwatch.Object) ([]byte, error) { return data, nil })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read reads events until version v arrives.
func read(ctx context.Context, w listwatch.Watcher, v listwatch.Version) error {
	var batch [8]listwatch.Event
	for {
		n, err := w.Next(ctx, batch[:])
		if err != nil {
			return err
		}
		if e := batch[n-1]; !e.Initial && e.Version >= v {
			return w.Close()
		}
	}
}

func gold(t testing.TB) listwatch.LabelSelector {
	t.Helper()
	return testkit.Must(listwatch.ParseLabelSelector("tier=gold"))(t)
}

// The history of concurrent writers and watchers must satisfy all guarantees.
func TestRecordedStoreKeepsAllGuarantees(t *testing.T) {
	s := newRecordedStore(t)
	const writers, each = 4, 200
	var readers, working sync.WaitGroup
	for i, q := range []listwatch.Query{
		{Bookmarks: true},
		{},
		{Selection: listwatch.Selection{Labels: gold(t)}, Bookmarks: true},
		{Start: listwatch.StartAny, Selection: listwatch.Selection{Name: "sentinel"}},
	} {
		w, err := s.recorder.Watcher(fmt.Sprintf("w%d", i)).Source(s.things, "local").Watch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			// All watchers select the sentinel, which is written last.
			var batch [8]listwatch.Event
			for {
				n, err := w.Next(t.Context(), batch[:])
				if err != nil {
					t.Error(err)
					return
				}
				if o := batch[n-1].Object; o.Key.Name == "sentinel" {
					w.Close()
					return
				}
			}
		})
	}
	for i := range writers {
		working.Go(func() {
			for n := range each {
				name := fmt.Sprintf("n%d", (i+n)%7)
				s.putOrDelete(t, name, [...]string{"gold", "iron"}[n%2], n)
			}
		})
	}
	working.Wait()
	s.put(t, "sentinel", "gold", 0)
	s.recorder.RecordHeal(s.db.Version())
	readers.Wait()
	source := s.recorder.Watcher("lists").Source(s.things, "local")
	for _, q := range []listwatch.Query{{}, {Selection: listwatch.Selection{Labels: gold(t)}}, {Limit: 2}} {
		if _, err := source.List(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.things.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	s.recorder.RecordInformerState("informer", Selection{}, page.Version, page.Items)
	h := s.recorder.History()
	h.Meta.Requirements = Requirements{Writes: each, Events: each, Lists: 3}
	if err := mustCheck(t, h).Err(); err != nil {
		t.Fatal(err)
	}
	for _, w := range h.Writes {
		if w.Before != nil && w.Before.Fingerprint == 0 {
			t.Fatalf("the write of %s at version %d has no fingerprint of the previous state", w.Key, w.Version)
		}
	}
}

// putOrDelete writes or deletes an object. Concurrent writers may use the same name.
func (r *recordedStore) putOrDelete(t *testing.T, name, tier string, n int) {
	key := listwatch.Key{Name: name}
	data := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"tier":%q}},"n":%d}`, name, tier, n)
	_, err := r.things.Get(t.Context(), key)
	switch {
	case err != nil:
		_, err = r.writes.Create(t.Context(), data)
	case n%5 == 0:
		_, err = r.writes.Delete(t.Context(), key, listwatch.Preconditions{})
	default:
		_, err = r.writes.Update(t.Context(), key, listwatch.Preconditions{},
			func(*listwatch.Object) ([]byte, error) { return data, nil })
	}
	if err != nil && !errors.Is(err, listwatch.AlreadyExists) && !errors.Is(err, listwatch.NotFound) {
		t.Error(err)
	}
}

func TestUnchangedUpdateIsNotRecorded(t *testing.T) {
	s := newRecordedStore(t)
	s.put(t, "a", "gold", 1)
	s.put(t, "a", "gold", 1)
	if n := len(s.recorder.History().Writes); n != 1 {
		t.Errorf("got %d writes, want 1", n)
	}
}

func TestCompactionExplainsExpired(t *testing.T) {
	s := newRecordedStore(t)
	s.put(t, "a", "gold", 1)
	start := s.db.Version()
	s.put(t, "a", "gold", 2)
	watch := func() error {
		w, err := s.recorder.Watcher("w").Source(s.things, "local").Watch(t.Context(),
			listwatch.Query{Start: listwatch.StartAt, Version: start, Bookmarks: true})
		if err != nil {
			return err
		}
		return read(t.Context(), w, s.db.Version())
	}
	if err := watch(); err != nil {
		t.Fatal(err)
	}
	s.recorder.RecordCompaction(s.db.Version, s.db.Compact)
	if err := watch(); !errors.Is(err, listwatch.Expired) {
		t.Fatalf("got %v, want Expired", err)
	}
	h := s.recorder.History()
	if r := mustCheck(t, h); r.Err() != nil || r.Summary.Expired != 1 || r.Summary.Compactions != 1 {
		t.Errorf("got %v, %s", r.Err(), r.Summary.String())
	}
	h.Compactions = nil
	if r := mustCheck(t, h); r.Summary.ByGuarantee[ExpiryJustified] != 1 {
		t.Errorf("without the compaction: want one violation of %s, got %s", ExpiryJustified, r.Summary.String())
	}
}

// A fixedReceiver is a transport.Receiver that returns a fixed list of events.
type fixedReceiver struct{ remaining []framing.WatchEvent }

func (f *fixedReceiver) Receive() (framing.WatchEvent, error) {
	if len(f.remaining) == 0 {
		return framing.WatchEvent{}, io.EOF
	}
	e := f.remaining[0]
	f.remaining = f.remaining[1:]
	return e, nil
}
func (*fixedReceiver) Header() http.Header { return nil }
func (*fixedReceiver) Close() error        { return nil }

func TestReceiverIsRecorded(t *testing.T) {
	rec := NewRecorder(Meta{})
	log := rec.Watcher("w").OpenSession(listwatch.Query{Start: listwatch.StartAt, Version: 3}, "h2")
	object := `{"metadata":{"name":"a","resourceVersion":"4"}}`
	r := log.Receiver(&fixedReceiver{[]framing.WatchEvent{
		{Type: "ADDED", Object: []byte(object)},
		{Type: "BOOKMARK", Object: []byte(`{"metadata":{"resourceVersion":"5"}}`)},
		{
			Type:   "BOOKMARK",
			Object: []byte(`{"metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"true"}}}`),
		},
		framing.FromError(&listwatch.Error{Code: listwatch.Expired}),
	}})
	for range 4 {
		if _, err := r.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	s := rec.History().Sessions[0]
	if len(s.Events) != 3 || s.Events[0].Fingerprint != FingerprintOf([]byte(object)) ||
		s.Events[0].Key != (Key{Name: "a"}) ||
		s.Events[1].Type != Bookmark || s.Events[2].Type != Synced || s.Events[2].Version != 6 {
		t.Errorf("got %+v", s.Events)
	}
	if !s.End.Expired || !s.End.Remote || s.Ready < s.Opened || s.Opened == 0 ||
		s.Request.Version != 3 || s.Transport != "h2" {
		t.Errorf("got %+v", s)
	}
}

func TestConnectionsAreRecorded(t *testing.T) {
	rec := NewRecorder(Meta{})
	watcher := rec.Watcher("w")
	log, trace := watcher.OpenSession(listwatch.Query{}, "remote"), watcher.Trace()
	trace.Lost(errors.New("not even opened"), 0)
	trace.Opened("chunked", 0)
	trace.Lost(io.EOF, 0)
	trace.Lost(errors.New("still refused"), 0)
	trace.Opened("h2", 7)
	log.End(&listwatch.Error{Code: listwatch.Expired, Remote: true})
	log.End(nil) // has no effect
	s := rec.History().Sessions[0]
	if len(s.Connections) != 2 || s.Connections[0].Error != cleanEnd || s.Connections[1].From != 7 ||
		s.Connections[1].Lost != s.End.At || !s.End.Expired {
		t.Errorf("got %+v, %+v", s.Connections, s.End)
	}
}

// BenchmarkRecorder measures the cost of recording an event of 1 KiB.
func BenchmarkRecorder(b *testing.B) {
	rec := NewRecorder(Meta{})
	log := rec.Watcher("w").OpenSession(listwatch.Query{}, "none")
	o := &listwatch.Object{Key: listwatch.Key{Name: "a"}, Version: 1, Data: make([]byte, 1<<10)}
	e := listwatch.Event{Type: listwatch.Modified, Object: o, Version: 1}
	b.ReportAllocs()
	for b.Loop() {
		log.Event(e)
	}
}
