package conformance

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/store"
)

// A Database makes collections; see [cases.Database].
type Database = cases.Database

// TestSource tests a store: the contract of [listwatch.Source] and [listwatch.Watcher] in process, and every case of the protocol that is
// about servers, through this module's server over HTTP/1.1. open is called for each test; it fails t or returns a new, empty database
// whose history holds at most historyBytes (zero: as usual) and that is closed by t.Cleanup.
//
// Cases that ask for what a store does not offer are skipped where except has them, with its reason.
func TestSource(t *testing.T, open func(t T, historyBytes int64) Database, except ...Exceptions) {
	for _, test := range contract {
		t.Run("contract/"+test.name, func(t *testing.T) {
			c, err := open(t, 0).Collection(store.CollectionSpec{APIVersion: "conformance.example.com/v1", Kind: "Thing", Plural: "things", Namespaced: true})
			if err != nil {
				t.Fatal(err)
			}
			test.run(&sourceTest{t, c})
		})
	}
	target := cases.Over("source", func(t T, s Setup) Database { return open(t, s.HistoryBytes) }, cases.Interceptors{})
	target.Variants, target.SupportsFakeTime = []string{"h1"}, false
	for _, c := range List() {
		if c.Subject != cases.Client {
			t.Run(c.ID, func(t *testing.T) {
				for _, e := range except {
					if reason := e[c.ID]; reason != "" {
						t.Skip(reason)
					}
				}
				c.Test(t, target)
			})
		}
	}
}

// Exceptions are cases, by their ID, and why they can't hold.
type Exceptions map[string]string

// contract is what a Watcher promises beside its events.
var contract = []struct {
	name string
	run  func(*sourceTest)
}{
	{"next-takes-what-fits", nextTakesWhatFits},
	{"next-returns-when-its-context-ends-and-loses-nothing", nextOutlivesItsContext},
	{"close-ends-a-next-that-waits-and-may-be-repeated", closeEndsNext},
	{"watchers-are-independent", watchersAreIndependent},
	{"poll-does-not-wait-and-wake-calls-once", pollAndWake},
	{"watch-outlives-the-context-it-was-opened-with", watchOutlivesItsContext},
}

// A sourceTest is a test of a collection without a server.
type sourceTest struct {
	*testing.T
	*store.Collection
}

func (s *sourceTest) create(names ...string) {
	s.Helper()
	for _, name := range names {
		if _, err := s.Create(s.Context(), []byte(`{"metadata":{"namespace":"default","name":"`+name+`"}}`)); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *sourceTest) watch(ctx context.Context) listwatch.Watcher {
	s.Helper()
	w, err := s.Watch(ctx, listwatch.Query{InitialEvents: listwatch.No})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { w.Close() })
	return w
}

// want reads events of these names, at most batch at a time.
func (s *sourceTest) want(w listwatch.Watcher, batch int, names ...string) {
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

func nextTakesWhatFits(s *sourceTest) {
	one, many := s.watch(s.Context()), s.watch(s.Context())
	s.create("a", "b", "c", "d", "e")
	s.want(one, 1, "a", "b", "c", "d", "e")
	s.want(many, 3, "a", "b", "c", "d", "e")
}

func nextOutlivesItsContext(s *sourceTest) {
	w := s.watch(s.Context())
	ctx, cancel := context.WithCancel(s.Context())
	failed := make(chan error)
	go func() {
		_, err := w.Next(ctx, make([]listwatch.Event, 1))
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		s.Errorf("got %v, want that the context has ended", err)
	}
	s.create("a")
	s.want(w, 1, "a")
}

func closeEndsNext(s *sourceTest) {
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
		s.Errorf("a Next that waits got %v, want io.EOF", err)
	}
	if _, err := w.Next(s.Context(), make([]listwatch.Event, 1)); err != io.EOF {
		s.Errorf("a Next after Close got %v, want io.EOF", err)
	}
}

func watchersAreIndependent(s *sourceTest) {
	closed, slow, quick := s.watch(s.Context()), s.watch(s.Context()), s.watch(s.Context())
	s.create("a")
	closed.Close()
	s.want(quick, 1, "a")
	s.create("b")
	s.want(quick, 1, "b")
	s.want(slow, 2, "a", "b")
}

func pollAndWake(s *sourceTest) {
	p, ok := s.watch(s.Context()).(listwatch.Poller)
	if !ok {
		s.Skip("its watchers are no Pollers")
	}
	dst := make([]listwatch.Event, 4)
	if n, err := p.Poll(dst); n != 0 || err != nil {
		s.Errorf("got %d, %v of an idle watcher; want nothing", n, err)
	}
	calls := make(chan struct{}, 8)
	p.Wake(func() { calls <- struct{}{} })
	s.create("a", "b")
	<-calls
	n, err := p.Poll(dst)
	if err != nil || n == 0 {
		s.Fatalf("got %d, %v after the call; want events", n, err)
	}
	for got := n; got < 2; got += n {
		if n, err = p.Poll(dst); err != nil {
			s.Fatal(err)
		}
	}
	if at := p.Position(); at < dst[n-1].Version {
		s.Errorf("the position is %d behind an event of %d", at, dst[n-1].Version)
	}
	s.create("c")
	if len(calls) > 0 {
		s.Error("Wake called twice, and was armed once")
	}
	p.Wake(func() { calls <- struct{}{} })
	<-calls // at once: there is something
}

func watchOutlivesItsContext(s *sourceTest) {
	ctx, cancel := context.WithCancel(s.Context())
	w := s.watch(ctx)
	cancel()
	s.create("a")
	s.want(w, 1, "a")
}
