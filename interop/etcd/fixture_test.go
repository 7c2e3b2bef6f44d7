package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
)

// patience is how long a test waits for what must come. Only a test that fails waits so long.
const patience = time.Minute

var things = store.CollectionSpec{APIVersion: "example.com/v1", Kind: "Thing", Namespaced: true, Fields: []string{"spec.n"}}

// collection opens the collection of things.
func collection(t testing.TB, db *etcd.DB) *store.Collection {
	t.Helper()
	c, err := db.Collection(things)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func key(name string) listwatch.Key { return listwatch.Key{Namespace: "default", Name: name} }

func thing(name string, n int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"namespace":"default","name":%q,"labels":{"odd":"%v"}},"spec":{"n":%d}}`, name, n%2 == 1, n)
}

// A writer writes to a collection, and what it does is recorded.
type writer struct {
	t   testing.TB
	rec *checker.Recorder
	to  *checker.RecordedCollection
	n   int
}

func (w *writer) create(name string) *listwatch.Object {
	w.t.Helper()
	w.n++
	o, err := w.to.Create(w.t.Context(), thing(name, w.n))
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *writer) update(name string) *listwatch.Object {
	w.t.Helper()
	w.n++
	o, err := w.to.Update(w.t.Context(), key(name), store.Preconditions{}, func(*listwatch.Object) ([]byte, error) { return thing(name, w.n), nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *writer) delete(name string) *listwatch.Object {
	w.t.Helper()
	o, err := w.to.Delete(w.t.Context(), key(name), store.Preconditions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// A witness follows a source as a client does: it goes on where it was when a watch ends, and lists again where it is told that its place expired.
type witness struct {
	name string
	rec  *checker.WatcherRecorder

	mu      sync.Mutex
	sources []listwatch.Source // guarded by mu; it takes the next one each time
	at      listwatch.Version  // guarded by mu
	expired int                // guarded by mu
	leave   context.CancelFunc // guarded by mu; ends the session
	done    chan struct{}
}

// hop ends the session; the next one is at the next source.
func (w *witness) hop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave()
}

// follow starts a witness that ends with the test.
func follow(t testing.TB, rec *checker.Recorder, name string, sources ...listwatch.Source) *witness {
	t.Helper()
	w := &witness{name: name, rec: rec.Watcher(name), sources: sources, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-w.done
	})
	return w
}

func (w *witness) run(ctx context.Context) {
	q := listwatch.Query{Bookmarks: true, InitialEvents: listwatch.Yes}
	for i := 0; ctx.Err() == nil; i++ {
		w.mu.Lock()
		source := w.sources[i%len(w.sources)]
		session, leave := context.WithCancel(ctx)
		w.leave = leave
		w.mu.Unlock()
		at, err := w.session(session, source, q)
		leave()
		switch {
		case errors.Is(err, listwatch.Expired):
			q = listwatch.Query{Bookmarks: true, InitialEvents: listwatch.Yes}
			w.mu.Lock()
			w.expired++
			w.mu.Unlock()
		case at != 0:
			q = listwatch.Query{Bookmarks: true, Start: listwatch.At, Version: at}
		}
	}
}

// session is one watch. It returns the version to resume from, if it came as far as to have one.
func (w *witness) session(ctx context.Context, source listwatch.Source, q listwatch.Query) (at listwatch.Version, err error) {
	stream, err := w.rec.Source(source, "local").Watch(ctx, q)
	if err != nil {
		pause := time.NewTimer(20 * time.Millisecond)
		defer pause.Stop()
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		return 0, err
	}
	defer stream.Close()
	synced := q.Start == listwatch.At
	var batch [16]listwatch.Event
	for {
		n, err := stream.Next(ctx, batch[:])
		for _, e := range batch[:n] {
			synced = synced || e.Type == listwatch.Synced
			if synced {
				at = e.Version
			}
		}
		if at != 0 {
			w.mu.Lock()
			w.at = at
			w.mu.Unlock()
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				return at, err
			}
			return at, nil
		}
	}
}

// position returns the version that w has come to, and how often its place was gone.
func (w *witness) position() (at listwatch.Version, expired int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at, w.expired
}

// eventually waits until done.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// sees waits until all witnesses have come to v.
func sees(t testing.TB, v listwatch.Version, all ...*witness) {
	t.Helper()
	for _, w := range all {
		eventually(t, fmt.Sprintf("%s sees version %d", w.name, v), func() bool {
			at, _ := w.position()
			return at >= v
		})
	}
}

// judge holds what was recorded against the guarantees of a watch.
func judge(t testing.TB, rec *checker.Recorder) *checker.Report {
	t.Helper()
	report, err := checker.Check(rec.History(), nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		t.Error(err)
	}
	return report
}
