package bolt_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/bolt"
)

// These tests reproduce bugs that etcd's watch had. Their names contain the numbers of
// etcd's issues. Where a bug required a second member, the test restarts the database
// instead.

// watchFrom opens a watch of all events after v.
func (t *testDB) watchFrom(v listwatch.Version) listwatch.Poller {
	t.Helper()
	return testkit.Watch(t, t.pods, listwatch.Query{Start: listwatch.StartAt, Version: v}).(listwatch.Poller)
}

// readVersions returns the versions of the events that w can return without waiting.
func readVersions(w listwatch.Poller) (versions []listwatch.Version, err error) {
	for events := make([]listwatch.Event, 7); ; {
		n, err := w.Poll(events)
		if n == 0 {
			return versions, err
		}
		for _, e := range events[:n] {
			versions = append(versions, e.Version)
		}
	}
}

// Issue 15220: etcd reported progress before it sent the events up to that progress.
func TestProgressComesAfterEventsEtcd15220(t *testing.T) {
	s := open(t, bolt.Options{})
	start := s.db.Version()
	w := s.watchFrom(start)
	var writers sync.WaitGroup
	const each = 20
	for i := range 4 {
		writers.Go(func() {
			for j := range each {
				s.create(fmt.Sprintf("p%d-%d", i, j))
			}
		})
	}
	seen, last := 0, start
	for seen < 4*each {
		progress := w.Progress().Version
		events := make([]listwatch.Event, 1)
		n, err := w.Next(t.Context(), events)
		if err != nil || n != 1 || events[0].Version <= progress || events[0].Version != last+1 {
			t.Fatalf("after progress to %d and an event at %d, got %d events, %v, at %d", progress, last, n, err,
				events[0].Version)
		}
		last = events[0].Version
		seen++
	}
	writers.Wait()
}

// Issue 15271: a watch went back in time after its server had been down. Issue 17247: etcd
// sent an event twice.
func TestRestartRepeatsNoEventEtcd15271And17247(t *testing.T) {
	s := open(t, bolt.Options{})
	last := s.db.Version()
	for i := range 5 {
		s.create(fmt.Sprint("a", i))
		s.update(fmt.Sprint("a", i), i+1)
		s.reopen()
		got, err := readVersions(s.watchFrom(last))
		if diff := cmp.Diff([]listwatch.Version{last + 1, last + 2}, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		last += 2
		if got, err := readVersions(s.watchFrom(last)); len(got) > 0 || err != nil {
			t.Fatalf("a watch from %d: got repeated events %v, %v", last, got, err)
		}
	}
}

// Issue 17529: lagging watchers skipped events that had been compacted.
func TestLaggingWatchIsCompleteOrExpiredEtcd17529(t *testing.T) {
	s := open(t, bolt.Options{History: listwatch.Retention{Age: -1, Bytes: 20 << 10}})
	bolt.DisableSync(s.db)
	start := s.create("a").Version
	var watches []listwatch.Poller
	var from []listwatch.Version
	expired := 0
	for i := range 200 {
		v := s.update("a", i+1).Version
		watches, from = append(watches, s.watchFrom(v)), append(from, v)
	}
	for i, w := range watches {
		got, err := readVersions(w)
		if errors.Is(err, listwatch.Expired) {
			expired++
			continue
		}
		if err != nil || len(got) != int(s.db.Version()-from[i]) {
			t.Errorf("the watch from %d got %d events, %v, want %d", from[i], len(got), err, s.db.Version()-from[i])
		}
	}
	if expired == 0 || expired == len(watches) {
		t.Errorf("%d of %d watches expired, want some (start version %d)", expired, len(watches), start)
	}
}

// Issues 18089 and 19179: a watch that resumed or started at the compacted version lost a
// delete.
func TestDeleteAtTheFloorIsSeenEtcd18089And19179(t *testing.T) {
	for offset := range listwatch.Version(5) { // the number of writes up to the floor
		s := open(t, bolt.Options{StartVersion: 1})
		s.create("a")
		s.update("a", 1)
		s.delete("a")
		s.create("b")
		before := s.watchFrom(1 + offset)
		s.pods.Backend().(interface{ CompactTo(listwatch.Version) }).CompactTo(1 + offset)
		check := func(w listwatch.Poller, from listwatch.Version) {
			t.Helper()
			got, err := readVersions(w)
			if err == nil && len(got) != int(5-from) {
				t.Errorf("floor %d: a watch from %d got %v, want all events to version 5 or Expired", 1+offset,
					from, got)
			}
			if err != nil && (!errors.Is(err, listwatch.Expired) || len(got) > 0) {
				t.Errorf("floor %d: a watch from %d got %v and then %v", 1+offset, from, got, err)
			}
		}
		check(before, 1+offset)
		for range 2 {
			for from := listwatch.Version(1); from <= 5; from++ {
				w, err := s.pods.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: from})
				if errors.Is(err, listwatch.Expired) {
					if from >= 1+offset {
						t.Errorf("floor %d: a watch from %d is Expired", 1+offset, from)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				check(w.(listwatch.Poller), from)
				_ = w.Close()
			}
			s.reopen()
		}
		if got := strings.Join(s.list(listwatch.Query{}), ""); strings.Contains(got, `"a"`) {
			t.Errorf("floor %d: a deleted object exists again: %s", 1+offset, got)
		}
	}
}

// Issue 20221: a watch from a future version received older events.
func TestFutureWatchGetsNoOldEventsEtcd20221(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bolt.Options{})
		last := s.create("a").Version
		s.reopen()
		w := s.watchFrom(last + 2)
		for i := range 4 {
			s.update("a", i+1)
		}
		events := make([]listwatch.Event, 9)
		n, err := w.Next(t.Context(), events)
		if err != nil || n != 2 || events[0].Version != last+3 || events[1].Version != last+4 {
			t.Errorf("got %d events, %v, the first at %d; want the events at %d and %d", n, err, events[0].Version,
				last+3, last+4)
		}
	})
}
