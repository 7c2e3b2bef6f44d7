package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A Database creates collections; see [reference.Database].
type Database = reference.Database

// TestSource tests a store. It tests the contract of [listwatch.Source] and [listwatch.Watcher]
// directly. Then it runs every conformance case, except the cases for clients, against this
// module's server, which serves the store over HTTP/1.1.
//
// open is called for each test. It returns a new, empty database, or fails t. The database must
// keep at most historyBytes of history; zero means the default of the database. open registers a
// t.Cleanup that closes the database.
//
// except lists the cases that the store cannot satisfy, by ID, with the reasons for skipping them.
// "consecutive-versions" stands for the cases that expect version N+1 after version N. Cases about
// objects with a TTL are skipped unless the backend is a store.Renewer.
func TestSource(t *testing.T, open func(t T, historyBytes int64) Database, except ...Exceptions) {
	target := reference.NewWithDatabase("source",
		func(t T, s Setup) Database { return open(t, s.HistoryBytes) }, reference.Interceptors{})
	testSource(t, target, except)
}

// A ReadOnlySource is a Source over data that other programs write; see [reference.ReadOnly].
type ReadOnlySource = reference.ReadOnly

// TestReadOnlySource is like [TestSource] for a Source that is not a store, such as a Source over a
// table of a database. open is called for each test. It returns a Source over a new, empty
// collection, and functions that write and compact that collection, or it fails t. The collection
// must keep at most historyBytes of history; zero means the default of the collection. open
// registers a t.Cleanup that closes the collection. Cases that need HTTP paths for single objects
// or consecutive versions are skipped.
func TestReadOnlySource(t *testing.T, open func(t T, historyBytes int64) ReadOnlySource, except ...Exceptions) {
	target := reference.NewReadOnly("source",
		func(t T, s Setup) ReadOnlySource { return open(t, s.HistoryBytes) }, reference.Interceptors{})
	t.Run("contract/newest-state-has-writes", func(t *testing.T) { testNewestStateHasWrites(t, open(t, 0)) })
	testSource(t, target, except)
}

// testNewestStateHasWrites tests that a list of the newest state contains every write that was
// acknowledged before the list, even if the Source lags behind the writer.
func testNewestStateHasWrites(t *testing.T, c ReadOnlySource) {
	for i := range 20 {
		key := listwatch.Key{Namespace: harness.DefaultNamespace, Name: fmt.Sprint("object-", i)}
		v, err := c.Write(t.Context(), key,
			fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q}}`, key.Namespace, key.Name))
		if err != nil {
			t.Fatal(err)
		}
		page, err := c.Source.List(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) != i+1 || page.Version < v {
			t.Fatalf("listed %d objects at version %d after %d writes, the last at version %d",
				len(page.Items), page.Version, i+1, v)
		}
	}
}

func testSource(t *testing.T, target Target, except []Exceptions) {
	target.Variants, target.SupportsFakeTime = []string{"h1"}, false
	dense := harness.ConsecutiveVersions
	if slices.ContainsFunc(except, func(e Exceptions) bool { return e[dense.String()] != "" }) {
		target.Abilities &^= dense
	}
	for _, test := range sourceContract {
		t.Run("contract/"+test.name, func(t *testing.T) {
			opened := target.Open(t, Setup{})
			test.run(&sourceTest{t, opened.Internals.Source, opened.Store})
		})
	}
	for _, c := range List() {
		if c.Side() != harness.Client {
			t.Run(c.ID, func(t *testing.T) {
				for _, e := range except {
					if reason := e[c.ID]; reason != "" {
						t.Skip(reason)
					}
				}
				runner.Test(t, c, target)
			})
		}
	}
}

// Exceptions maps the IDs of cases to the reasons for skipping them.
type Exceptions map[string]string

// sourceContract lists the tests that call a Source and its Watchers directly. They check
// properties that an HTTP client cannot observe.
var sourceContract = []struct {
	name string
	run  func(*sourceTest)
}{
	{"next-fills-buffer", testNextFillsBuffer},
	{"next-survives-cancellation", testNextSurvivesCancellation},
	{"close-ends-next", testCloseEndsNext},
	{"watchers-are-independent", testWatchersAreIndependent},
	{"poll-and-wake", testPollAndWake},
	{"watch-outlives-context", testWatchOutlivesContext},
	{"stats", testStats},
}

// A sourceTest is a test of a collection without a server.
type sourceTest struct {
	*testing.T
	listwatch.Source
	store Store
}

func (s *sourceTest) create(names ...string) {
	s.Helper()
	for _, name := range names {
		key := listwatch.Key{Namespace: harness.DefaultNamespace, Name: name}
		data := fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q}}`, key.Namespace, name)
		if _, err := s.store.Put(s.Context(), key, data); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *sourceTest) watch(ctx context.Context) listwatch.Watcher {
	s.Helper()
	w, err := s.Watch(ctx, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { w.Close() })
	return w
}

// wantEvents reads events of the objects with the given names, in that order. Each read has room
// for batch events.
func (s *sourceTest) wantEvents(w listwatch.Watcher, batch int, names ...string) {
	s.Helper()
	dst := make([]listwatch.Event, batch)
	for len(names) > 0 {
		n, err := w.Next(s.Context(), dst)
		if err != nil || n == 0 || n > len(names) {
			s.Fatalf("got %d events, %v; want 1 to %d", n, err, len(names))
		}
		for i, e := range dst[:n] {
			if e.Object.Key.Name != names[i] {
				s.Fatalf("got %v, want %s", e.Object.Key, names[i])
			}
		}
		names = names[n:]
	}
}

func testNextFillsBuffer(s *sourceTest) {
	one, many := s.watch(s.Context()), s.watch(s.Context())
	s.create("a", "b", "c", "d", "e")
	s.wantEvents(one, 1, "a", "b", "c", "d", "e")
	s.wantEvents(many, 3, "a", "b", "c", "d", "e")
}

func testNextSurvivesCancellation(s *sourceTest) {
	w := s.watch(s.Context())
	ctx, cancel := context.WithCancel(s.Context())
	failed := make(chan error)
	go func() {
		_, err := w.Next(ctx, make([]listwatch.Event, 1))
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		s.Errorf("got %v, want context.Canceled", err)
	}
	s.create("a")
	s.wantEvents(w, 1, "a")
}

func testCloseEndsNext(s *sourceTest) {
	w := s.watch(s.Context())
	failed := make(chan error)
	go func() {
		_, err := w.Next(context.Background(), make([]listwatch.Event, 1))
		failed <- err
	}()
	for range 2 {
		if err := w.Close(); err != nil {
			s.Error(err)
		}
	}
	if err := <-failed; err != io.EOF {
		s.Errorf("a waiting Next returned %v, want io.EOF", err)
	}
	if _, err := w.Next(s.Context(), make([]listwatch.Event, 1)); err != io.EOF {
		s.Errorf("a Next after Close returned %v, want io.EOF", err)
	}
}

func testWatchersAreIndependent(s *sourceTest) {
	closed, slow, quick := s.watch(s.Context()), s.watch(s.Context()), s.watch(s.Context())
	s.create("a")
	closed.Close()
	s.wantEvents(quick, 1, "a")
	s.create("b")
	s.wantEvents(quick, 1, "b")
	s.wantEvents(slow, 2, "a", "b")
}

func testPollAndWake(s *sourceTest) {
	p, ok := s.watch(s.Context()).(listwatch.Poller)
	if !ok {
		s.Skip("the watchers do not implement Poller")
	}
	dst := make([]listwatch.Event, 4)
	if n, err := p.Poll(dst); n != 0 || err != nil {
		s.Errorf("Poll of an idle watcher returned %d, %v; want no events", n, err)
	}
	calls := make(chan struct{}, 8)
	p.Wake(func() { calls <- struct{}{} })
	s.create("a", "b")
	<-calls
	n, err := p.Poll(dst)
	if err != nil || n == 0 {
		s.Fatalf("Poll after the wake-up returned %d, %v; want events", n, err)
	}
	for got := n; got < 2; got += n {
		if n, err = p.Poll(dst); err != nil {
			s.Fatal(err)
		}
	}
	if at := p.Progress().Version; at < dst[n-1].Version {
		s.Errorf("Position returned %d after an event of version %d", at, dst[n-1].Version)
	}
	s.create("c")
	// Wake must call its function at most once. Therefore calls must still be empty when this event
	// arrives.
	again := make(chan struct{}, 8)
	p.Wake(func() { again <- struct{}{} })
	<-again // returns immediately, because an event is pending
	if len(calls) > 0 {
		s.Error("Wake called its function twice")
	}
}

func testStats(s *sourceTest) {
	source, ok := s.Source.(interface{ Stats() listwatch.Stats })
	if !ok {
		s.Skip("the Source has no method Stats")
	}
	empty := source.Stats()
	if empty == (listwatch.Stats{}) {
		s.Skip("the backend of the store has no method Stats")
	}
	w := s.watch(s.Context())
	s.create("a", "b", "c")
	s.wantEvents(w, 3, "a", "b", "c")
	page, err := s.List(s.Context(), listwatch.Query{})
	if err != nil {
		s.Fatal(err)
	}
	var bytes int64
	for _, o := range page.Items {
		bytes += int64(len(o.Data))
	}
	got := source.Stats()
	if got.Objects != 3 || got.Watchers != 1 || got.Newest != page.Version || got.ObjectBytes != bytes {
		s.Errorf("got %+v, want 3 objects with %d bytes, one watcher, and the newest version %d", got, bytes,
			page.Version)
	}
	if got.Oldest == 0 || got.Oldest > empty.Newest || got.HistoryBytes <= 0 {
		s.Errorf("got %+v, want the history from version %d on", got, empty.Newest)
	}
	w.Close()
	if got := source.Stats(); got.Watchers != 0 {
		s.Errorf("got %d watchers after the only one was closed", got.Watchers)
	}
}

func testWatchOutlivesContext(s *sourceTest) {
	ctx, cancel := context.WithCancel(s.Context())
	w := s.watch(ctx)
	cancel()
	s.create("a")
	s.wantEvents(w, 1, "a")
}
