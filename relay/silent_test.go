package relay_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/relay"
)

// A silentSource is an upstream that sends no useful bookmark, except at the end of initial events.
// Its watchers are not Pollers.
type silentSource struct {
	listwatch.Source
	// lifetime is the time after which a watch ends. If zero, watches do not end.
	lifetime time.Duration
	// stale makes bookmarks show the version of the last event, and refusal makes watches from a
	// version fail. If neither is set, there are no bookmarks.
	stale   bool
	refusal error
	opened  atomic.Int64
}

func (s *silentSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	s.opened.Add(1)
	if s.refusal != nil && !q.SendsInitialEvents() {
		return nil, s.refusal
	}
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	silent := &silentWatcher{Watcher: w, source: s, last: q.Version}
	if s.lifetime != 0 {
		silent.end = time.Now().Add(s.lifetime)
	}
	return silent, nil
}

type silentWatcher struct {
	listwatch.Watcher
	source *silentSource
	last   listwatch.Version
	told   bool
	end    time.Time
}

func (s *silentWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		n, err := s.next(ctx, dst)
		kept := 0
		for _, e := range dst[:n] {
			if e.Type == listwatch.Bookmark {
				continue
			}
			dst[kept], s.last = e, e.Version
			kept++
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

func (s *silentWatcher) next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if s.end.IsZero() {
		return s.Watcher.Next(ctx, dst)
	}
	limited, cancel := context.WithDeadline(ctx, s.end)
	defer cancel()
	n, err := s.Watcher.Next(limited, dst)
	if err == nil || ctx.Err() != nil || limited.Err() == nil {
		return n, err
	}
	if s.source.stale && !s.told {
		s.told, s.end = true, s.end.Add(time.Second)
		dst[0] = listwatch.NewBookmark(listwatch.Description{}, listwatch.State{Version: s.last})
		return 1, nil
	}
	return 0, io.EOF
}

// silentProbes are the ways in which a probe fails.
func silentProbes(o *origin) map[string]*silentSource {
	return map[string]*silentSource{
		"no bookmark":    {Source: o, lifetime: 3 * time.Second},
		"stale bookmark": {Source: o, lifetime: time.Second, stale: true},
		"expired":        {Source: o, refusal: &listwatch.Error{Code: listwatch.Expired}},
		"no end":         {Source: o},
		"no probe":       nil,
	}
}

// withSilentUpstream calls f with a relay of each upstream whose probes fail.
func withSilentUpstream(t *testing.T, o relay.Options, f func(*testing.T, *silentTest)) {
	t.Helper()
	for name := range silentProbes(nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &silentTest{origin: openOrigin(t)}
				s.other = openCollection(t, s.db, "Other")
				s.put("a", "red")
				s.elsewhere(3)
				if s.probe = silentProbes(s.origin)[name]; s.probe != nil {
					o.ProbeSource = s.probe
				}
				s.relay = openRelay(t, &silentSource{Source: s.origin}, o)
				f(t, s)
			})
		})
	}
}

type silentTest struct {
	*origin
	other listwatch.Store
	probe *silentSource
	relay *relay.Relay
}

// elsewhere makes n writes to another collection of the database.
func (s *silentTest) elsewhere(n int) {
	s.Helper()
	for range n {
		_, err := s.other.Create(context.Background(),
			[]byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`))
		if err != nil {
			s.Fatal(err)
		}
	}
}

// wantNewest lists the newest state at the relay and at the origin, and compares the lists.
func (s *silentTest) wantNewest(name string, q listwatch.Query) {
	s.Helper()
	began := time.Now()
	page, want := mustList(s, s.relay, q), mustList(s, s.origin, q)
	if took := time.Since(began); took > slow {
		s.Errorf("%s: List took %v, want at most %v", name, took, slow)
	}
	if page.Version != s.db.Version() || len(page.Items) != len(want.Items) {
		s.Fatalf("%s: List returned %d objects at version %d, want %d at version %d", name,
			len(page.Items), page.Version, len(want.Items), s.db.Version())
	}
	for i, o := range want.Items {
		if string(page.Items[i].Data) != string(o.Data) {
			s.Errorf("%s: got %s, want %s", name, page.Items[i].Data, o.Data)
		}
	}
}

// slow is the time that a read of a silent upstream may take.
const slow = 50 * time.Millisecond

func TestNewestReadsNeedNoBookmark(t *testing.T) {
	withSilentUpstream(t, relay.Options{}, func(t *testing.T, s *silentTest) {
		awaitReady(t, s.relay)
		for name, q := range testQueries(t) {
			s.put("b", name)
			s.put("a", []string{"red", "blue"}[len(name)%2])
			s.elsewhere(2)
			s.wantNewest(name, q)
			q.Limit = 50 // not small, because it has pages
			s.elsewhere(1)
			s.wantNewest(name, q)
			time.Sleep(7 * time.Second)
		}
		began := time.Now()
		s.elsewhere(1)
		got, err := s.relay.Get(t.Context(), listwatch.Key{Namespace: "default", Name: "a"})
		if took := time.Since(began); err != nil || got == nil || took > slow {
			t.Errorf("Get returned %v, %v after %v", got, err, took)
		}
		if got, err := s.relay.Get(t.Context(), listwatch.Key{Namespace: "default", Name: "none"}); err != nil ||
			got != nil {
			t.Errorf("Get of a missing object returned %v, %v", got, err)
		}
		first := mustList(t, s.relay, listwatch.Query{Limit: 1})
		next := mustList(t, s.relay, listwatch.Query{Limit: 1, Continue: first.Continue})
		if len(next.Items) != 1 || next.Version != first.Version || next.Items[0].Key.Name != "b" {
			t.Errorf("the second page is %+v, want b at version %d", next, first.Version)
		}
	})
}

func TestReadsOfQuietCollectionsDoNotWaitForEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silentTest{origin: openOrigin(t)}
		s.other = openCollection(t, s.db, "Other")
		r := awaitReady(t, openRelay(t, &silentSource{Source: s.origin}, relay.Options{}))
		for n := range 5 {
			s.elsewhere(1)
			began := time.Now()
			mustList(t, r, listwatch.Query{Limit: 50}) // not small, because it has pages
			if took := time.Since(began); n > 0 && took != 0 {
				t.Errorf("the read after write %d to another collection took %v, want no wait for an event", n, took)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

func TestWatchesNeedNoBookmark(t *testing.T) {
	withSilentUpstream(t, relay.Options{}, func(t *testing.T, s *silentTest) {
		awaitReady(t, s.relay)
		for _, conflate := range []time.Duration{0, time.Second} {
			s.put("gone", "red")
			s.elsewhere(2)
			began := time.Now()
			initial := testkit.Watch(t, s.relay, listwatch.Query{Bookmarks: true, Conflate: conflate})
			state := testkit.Read(t, initial, 3)
			if took := time.Since(began); took > slow {
				t.Errorf("the initial events took %v, want at most %v", took, slow)
			}
			if last := state[2]; last.Type != listwatch.Synced || last.Version != s.db.Version() {
				t.Errorf("the initial events end with %s at version %d, want SYNCED at %d",
					last.Type, last.Version, s.db.Version())
			}
			if !state[0].Initial {
				t.Errorf("got %+v first, want an initial event", state[0])
			}
			now := testkit.Watch(t, s.relay, fromNow)
			page := mustList(t, s.relay, listwatch.Query{})
			after := testkit.Watch(t, s.relay,
				listwatch.Query{Start: listwatch.StartAt, Version: page.Version, Conflate: conflate})
			time.Sleep(10 * time.Minute)
			s.elsewhere(1)
			s.put("a", "blue"+conflate.String())
			s.remove("gone")
			for name, w := range map[string]listwatch.Watcher{"initial": initial, "now": now, "after": after} {
				got := testkit.Read(t, w, 2)
				if got[0].Type != listwatch.Modified || got[1].Type != listwatch.Deleted ||
					got[1].Version != s.db.Version() {
					t.Errorf("%s: got %s and %s, want MODIFIED and DELETED", name, formatEvent(got[0]),
						formatEvent(got[1]))
				}
				if conflate == 0 && w.(listwatch.Poller).Progress().Version != s.db.Version() {
					t.Errorf("%s: the position is %d", name, w.(listwatch.Poller).Progress().Version)
				}
			}
		}
		future := testkit.Watch(t, s.relay, listwatch.Query{Start: listwatch.StartAt, Version: s.db.Version() + 10})
		if _, err := readToEnd(t, future); listwatch.CodeOf(err) != listwatch.NotYet {
			t.Errorf("a watch from a version that does not exist ended with %v, want NotYet", err)
		}
	})
}

// The relay must also become ready, because a program that is never ready gets no requests.
func TestLagNeedsNoBookmark(t *testing.T) {
	var reports []error
	o := relay.Options{
		CheckInterval: 4 * time.Second,
		Trace:         &relay.Trace{Probed: func(err error) { reports = append(reports, err) }},
	}
	withSilentUpstream(t, o, func(t *testing.T, s *silentTest) {
		reports = nil
		awaitReady(t, s.relay)
		for second := range 600 {
			s.elsewhere(1)
			time.Sleep(time.Second)
			if h := s.relay.Health(); h.Lag < 0 || h.Lag > 20*time.Second {
				t.Fatalf("after %d s the lag is %v, want 0 to 20 s: %+v", second, h.Lag, h)
			}
		}
		if s.probe == nil {
			return
		}
		if err := s.relay.ProbeErr(); err == nil || len(reports) != 1 || reports[0] == nil {
			t.Errorf("ProbeErr is %v, and Probed got %v, want a reason", err, reports)
		}
		if n := s.probe.opened.Load(); n > 20 {
			t.Errorf("the relay has probed %d times in 10 minutes, want at most 20", n)
		}
	})
}

// An upstream that has restarted may refuse the versions before its start. Probes work again when
// the relay has requested the state, so their failures until then do not count.
func TestProbesOfADisconnectedRelayDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		o.put("a", "red")
		source := &restartedSource{Source: listwatchtest.New(o)}
		probe := &silentSource{Source: o, refusal: &listwatch.Error{Code: listwatch.Expired}}
		r := awaitReady(t, openRelay(t, source, relay.Options{ProbeSource: probe, BackfillVersions: -1}))
		source.isDown.Store(true)
		source.Cut(errDown)
		for range 10 {
			if _, err := other.Create(t.Context(),
				[]byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
		if err := r.ProbeErr(); err != nil || probe.opened.Load() == 0 {
			t.Errorf("after %d probes, ProbeErr is %v, want probes and no error", probe.opened.Load(), err)
		}
	})
}

// A restartedSource refuses watches while it is down, but not lists.
type restartedSource struct {
	*listwatchtest.Source
	isDown atomic.Bool
}

func (s *restartedSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if s.isDown.Load() {
		return nil, errDown
	}
	return s.Source.Watch(ctx, q)
}

// A relay whose own watch lags must not report that it has what it lacks.
func TestLagIsNotSettledByMissingEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		o.put("a", "red")
		o.put("b", "red")
		slow := &stuckSource{Source: o}
		r := awaitReady(t, openRelay(t, slow, relay.Options{CheckInterval: time.Second, BackfillVersions: -1}))
		time.Sleep(10 * time.Second)
		slow.stuck.Store(true)
		for _, change := range []func(){
			func() { o.remove("b") },
			func() { o.put("a", "blue") },
		} {
			slow.stuck.Store(true)
			change()
			written := time.Now()
			if _, err := other.Create(t.Context(),
				[]byte(`{"metadata":{"generateName":"x-","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				time.Sleep(time.Second)
				if lag := r.Health().Lag; lag < time.Since(written) {
					t.Fatalf("the relay lacks a write that is %v old, and reports a lag of %v",
						time.Since(written), lag)
				}
			}
			slow.stuck.Store(false)
			time.Sleep(10 * time.Second)
			if lag := r.Health().Lag; lag > 5*time.Second {
				t.Errorf("the lag is %v after the event has arrived", lag)
			}
		}
	})
}

// A stuckSource holds back the events of its watches while stuck is true. They have no bookmarks.
type stuckSource struct {
	listwatch.Source
	stuck atomic.Bool
}

func (s *stuckSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := (&silentSource{Source: s.Source}).Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &stuckWatcher{w, s}, nil
}

type stuckWatcher struct {
	listwatch.Watcher
	source *stuckSource
}

func (s *stuckWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := s.Watcher.Next(ctx, dst)
	for s.source.stuck.Load() && ctx.Err() == nil {
		<-time.After(100 * time.Millisecond)
	}
	return n, err
}
