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
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
)

// waitTimeout limits the time that a test waits. Only failing tests wait that long.
const waitTimeout = 5 * time.Minute

var things = store.CollectionSpec{
	APIVersion: "example.com/v1", Kind: "Thing", Namespaced: true,
	Fields: []string{"spec.n"},
}

// openThings opens the collection of kind Thing.
func openThings(t testing.TB, db *etcd.DB) *store.Collection {
	t.Helper()
	return testkit.Must(db.Collection(things))(t)
}

func key(name string) listwatch.Key { return listwatch.Key{Namespace: "default", Name: name} }

func thing(name string, n int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"namespace":"default","name":%q,"labels":{"odd":"%v"}},"spec":{"n":%d}}`,
		name, n%2 == 1, n)
}

// A recordedWriter writes to a collection and records its writes.
type recordedWriter struct {
	t        testing.TB
	recorder *checker.Recorder
	to       *checker.RecordedCollection
	n        int
}

func (w *recordedWriter) create(name string) *listwatch.Object {
	w.t.Helper()
	w.n++
	o, err := w.to.Create(w.t.Context(), thing(name, w.n))
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *recordedWriter) update(name string) *listwatch.Object {
	w.t.Helper()
	w.n++
	o, err := w.to.Update(w.t.Context(), key(name), listwatch.Preconditions{},
		func(*listwatch.Object) ([]byte, error) { return thing(name, w.n), nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *recordedWriter) delete(name string) *listwatch.Object {
	w.t.Helper()
	o, err := w.to.Delete(w.t.Context(), key(name), listwatch.Preconditions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// A resumingWatcher watches a source as a client does: it resumes when a watch ends, and
// starts over when its version has expired.
type resumingWatcher struct {
	name     string
	recorder *checker.WatcherRecorder

	mu sync.Mutex
	// Guarded by mu.
	sources    []listwatch.Source // successive sessions use successive sources
	version    listwatch.Version  // the version of the last event or bookmark
	change     listwatch.Version  // the version of the newest write that was seen
	expired    int                // the number of watches that found their version expired
	endSession context.CancelFunc

	cancel context.CancelFunc // ends run
	done   chan struct{}      // closed when run has returned
}

// switchSource ends the session. The next session uses the next source.
func (w *resumingWatcher) switchSource() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endSession()
}

// startWatcher runs a watcher until the test ends.
func startWatcher(t testing.TB, rec *checker.Recorder, name string, sources ...listwatch.Source) *resumingWatcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &resumingWatcher{
		name: name, recorder: rec.Watcher(name), sources: sources, cancel: cancel,
		done: make(chan struct{}),
	}
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
	t.Cleanup(w.stop)
	return w
}

// stop ends w, and returns when it has ended.
func (w *resumingWatcher) stop() {
	w.cancel()
	<-w.done
}

func (w *resumingWatcher) run(ctx context.Context) {
	q := listwatch.Query{Bookmarks: true, InitialEvents: listwatch.InitialEventsYes}
	for i := 0; ctx.Err() == nil; i++ {
		w.mu.Lock()
		source := w.sources[i%len(w.sources)]
		session, leave := context.WithCancel(ctx)
		w.endSession = leave
		w.mu.Unlock()
		at, err := w.session(session, source, q)
		leave()
		switch {
		case errors.Is(err, listwatch.Expired):
			q = listwatch.Query{Bookmarks: true, InitialEvents: listwatch.InitialEventsYes}
			w.mu.Lock()
			w.expired++
			w.mu.Unlock()
		case at != 0:
			q = listwatch.Query{Bookmarks: true, Start: listwatch.StartAt, Version: at}
		}
	}
}

// session opens one watch and reads it until it ends. It returns the version from which the next
// watch can resume, or 0 if the session received no such version.
func (w *resumingWatcher) session(ctx context.Context, source listwatch.Source,
	q listwatch.Query,
) (at listwatch.Version, err error) {
	watcher, err := w.recorder.Source(source, "local").Watch(ctx, q)
	if err != nil {
		pause := time.NewTimer(20 * time.Millisecond)
		defer pause.Stop()
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		return 0, err
	}
	defer watcher.Close()
	synced := q.Start == listwatch.StartAt
	var batch [16]listwatch.Event
	for {
		n, err := watcher.Next(ctx, batch[:])
		var change listwatch.Version
		for _, e := range batch[:n] {
			if e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
				change = max(change, e.Version)
			}
			synced = synced || e.Type == listwatch.Synced
			if synced {
				at = e.Version
			}
		}
		w.mu.Lock()
		w.change = max(w.change, change)
		if at != 0 {
			w.version = at
		}
		w.mu.Unlock()
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				return at, err
			}
			return at, nil
		}
	}
}

// position returns the last version that w has seen, and the number of times that w had to start
// over because its version had expired.
func (w *resumingWatcher) position() (at listwatch.Version, expired int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version, w.expired
}

// eventually calls done repeatedly until it returns true.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(waitTimeout)
	for !done() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("%s: timeout after %v", what, waitTimeout)
		}
	}
}

// list lists s. It repeats the list if etcd has not confirmed within three seconds that the state
// is the newest, which happens on a busy machine.
func list(t testing.TB, s listwatch.Source, q listwatch.Query) (page listwatch.Page) {
	t.Helper()
	eventually(t, "list", func() bool {
		var err error
		page, err = s.List(t.Context(), q)
		if err != nil && !errors.Is(err, listwatch.NotYet) {
			t.Fatal(err)
		}
		return err == nil
	})
	return page
}

// waitForVersion waits until all watchers have seen v or a newer version.
func waitForVersion(t testing.TB, v listwatch.Version, all ...*resumingWatcher) {
	t.Helper()
	for _, w := range all {
		eventually(t, fmt.Sprintf("version %d at watcher %s", v, w.name), func() bool {
			at, _ := w.position()
			return at >= v
		})
	}
}

// stopWatchers stops all watchers. It returns the newest version of a write that any of them has
// seen, or v if that is newer.
func stopWatchers(v listwatch.Version, all ...*resumingWatcher) listwatch.Version {
	for _, w := range all {
		w.stop()
		v = max(v, w.change)
	}
	return v
}

// checkHistory checks the recorded history against the guarantees of a watch.
func checkHistory(t testing.TB, rec *checker.Recorder) *checker.Report {
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
