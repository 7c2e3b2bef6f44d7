package bolt_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/bolt"
)

// The mistakes that watches of etcd made, by the numbers of its issues, tried on this store. Where they needed more than one member, a
// restart stands for the other one.

// follow opens a watch of everything after v.
func (s *tester) follow(v listwatch.Version) listwatch.Poller {
	s.Helper()
	w, err := s.pods.Watch(s.Context(), listwatch.Query{Start: listwatch.At, Version: v})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = w.Close() })
	return w.(listwatch.Poller)
}

// read returns the versions that w has now.
func read(w listwatch.Poller) (versions []listwatch.Version, err error) {
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

// 15220: progress was told before the events it spoke of.
func TestProgressComesAfterEventsEtcd15220(t *testing.T) {
	s := open(t, bolt.Options{})
	start := s.db.Version()
	w := s.follow(start)
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
		progress := w.Position()
		events := make([]listwatch.Event, 1)
		n, err := w.Next(t.Context(), events)
		if err != nil || n != 1 || events[0].Version <= progress || events[0].Version != last+1 {
			t.Fatalf("after progress to %d and an event of %d came %d events, %v, of %d", progress, last, n, err, events[0].Version)
		}
		last = events[0].Version
		seen++
	}
	writers.Wait()
}

// 15271: a watch went back in time when its server had been away. 17247: an event came twice.
func TestNothingComesAgainAfterARestartEtcd15271And17247(t *testing.T) {
	s := open(t, bolt.Options{})
	last := s.db.Version()
	for i := range 5 {
		s.create(fmt.Sprint("a", i))
		s.update(fmt.Sprint("a", i), i+1)
		s.reopen()
		got, err := read(s.follow(last))
		if diff := cmp.Diff([]listwatch.Version{last + 1, last + 2}, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		last += 2
		if got, err := read(s.follow(last)); len(got) > 0 || err != nil {
			t.Fatalf("a watch from %d got %v, %v again", last, got, err)
		}
	}
}

// 17529: watchers that lagged were moved on over events that were gone.
func TestLaggardsSeeEverythingOrAreToldEtcd17529(t *testing.T) {
	s := open(t, bolt.Options{HistoryAge: -1, HistoryBytes: 20 << 10})
	bolt.NoSync(s.db)
	start := s.create("a").Version
	var laggards []listwatch.Poller
	var from []listwatch.Version
	told := 0
	for i := range 200 {
		v := s.update("a", i+1).Version
		laggards, from = append(laggards, s.follow(v)), append(from, v)
	}
	for i, w := range laggards {
		got, err := read(w)
		if errors.Is(err, listwatch.Expired) {
			told++
			continue
		}
		if err != nil || len(got) != int(s.db.Version()-from[i]) {
			t.Errorf("the one from %d got %d events, %v, of %d", from[i], len(got), err, s.db.Version()-from[i])
		}
	}
	if told == 0 || told == len(laggards) {
		t.Errorf("%d of %d were told that they fell behind, want some (after %d)", told, len(laggards), start)
	}
}

// 18089 and 19179: a delete was lost to watches that were resumed, or opened, where the history had just been cut.
func TestDeleteAtTheCutIsSeenOrExpiredEtcd18089And19179(t *testing.T) {
	for cut := range listwatch.Version(5) { // create 1, update 2, delete 3, create 4
		s := open(t, bolt.Options{StartVersion: 1})
		s.create("a")
		s.update("a", 1)
		s.delete("a")
		s.create("b")
		before := s.follow(1 + cut)
		s.pods.Backend().(interface{ CompactTo(listwatch.Version) }).CompactTo(1 + cut)
		check := func(w listwatch.Poller, from listwatch.Version) {
			t.Helper()
			got, err := read(w)
			if err == nil && len(got) != int(5-from) {
				t.Errorf("cut at %d: a watch from %d got %v, want all to 5, or that it is Expired", 1+cut, from, got)
			}
			if err != nil && (!errors.Is(err, listwatch.Expired) || len(got) > 0) {
				t.Errorf("cut at %d: a watch from %d got %v and then %v", 1+cut, from, got, err)
			}
		}
		check(before, 1+cut)
		for range 2 {
			for from := listwatch.Version(1); from <= 5; from++ {
				w, err := s.pods.Watch(t.Context(), listwatch.Query{Start: listwatch.At, Version: from})
				if errors.Is(err, listwatch.Expired) {
					if from >= 1+cut {
						t.Errorf("cut at %d: a watch from %d is Expired", 1+cut, from)
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
		if got := strings.Join(s.state(listwatch.Query{}), ""); strings.Contains(got, `"a"`) {
			t.Errorf("cut at %d: what was deleted is there again: %s", 1+cut, got)
		}
	}
}

// 20221: a watch from a version to come got older events.
func TestAWatchFromTheFutureGetsNoOldEventsEtcd20221(t *testing.T) {
	s := open(t, bolt.Options{})
	last := s.create("a").Version
	s.reopen()
	w := s.follow(last + 2)
	for i := range 4 {
		s.update("a", i+1)
	}
	events := make([]listwatch.Event, 9)
	n, err := w.Next(t.Context(), events)
	if err != nil || n != 2 || events[0].Version != last+3 || events[1].Version != last+4 {
		t.Errorf("got %d events, %v, from %d; want those of %d and %d", n, err, events[0].Version, last+3, last+4)
	}
}
