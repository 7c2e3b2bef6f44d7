package relay_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
)

// stateOf returns the state of everything that s has.
func stateOf(t *testing.T, s listwatch.Source) listwatch.State {
	t.Helper()
	for e, err := range listwatch.All(t.Context(), testkit.Watch(t, s, everything)) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == listwatch.Synced {
			return e.State()
		}
	}
	t.Fatal("the watch ended before Synced")
	return listwatch.State{}
}

// since returns the initial events that s sends to a reader with the given state, and whether they
// are a difference.
func since(t *testing.T, s listwatch.Source, has listwatch.State) (lines []string, isDifference bool) {
	t.Helper()
	q := everything
	q.Start, q.Version, q.InitialEvents, q.Since = listwatch.StartAt, has.Version, listwatch.InitialEventsYes, has
	for e, err := range listwatch.All(t.Context(), testkit.Watch(t, s, q)) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == listwatch.Synced {
			_, isDifference = e.Since()
			break
		}
		lines = append(lines, fmt.Sprint(e.Type, " ", e.Object.Key.Name))
	}
	return lines, isDifference
}

func TestRelayRequestsAndServesTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		o.put("b", "red")
		o.put("c", "red")
		upstream := newFaultySource(o)
		patched := 0
		// A state that was listed for a backfill has no ID before the first bookmark.
		r := awaitReady(t, openRelay(t, upstream, relay.Options{BackfillVersions: -1, Trace: &relay.Trace{
			Patched: func(_, _ listwatch.Version) { patched++ },
		}}))
		has := stateOf(t, r)
		upstream.setDown(errDown)
		o.put("a", "blue")
		o.remove("b")
		o.put("d", "red")
		if err := upstream.Expire(); err != nil {
			t.Fatal(err)
		}
		upstream.setDown(nil)
		time.Sleep(downtime)
		lines, isDifference := since(t, r, has)
		if got := fmt.Sprint(lines); !isDifference || got != "[ADDED a ADDED d DELETED b]" {
			t.Errorf("got %s, a difference: %v, want the three changes", got, isDifference)
		}
		if patched != 1 {
			t.Errorf("the relay received %d differences, want 1", patched)
		}
		if page := mustList(t, r, listwatch.Query{}); len(page.Items) != 3 {
			t.Errorf("the relay has %d objects, want 3", len(page.Items))
		}
	})
}

// An event that does not fit casts doubt on the state of the relay.
func TestDoubtfulStateIsNotPatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		why := ""
		awaitReady(t, openRelay(t, upstream, relay.Options{Trace: &relay.Trace{
			Replaced: func(_ listwatch.Version, _ int, reason string) { why = reason },
			Patched:  func(_, _ listwatch.Version) { t.Error("a difference was applied to a doubtful state") },
		}}))
		synctest.Wait()
		upstream.inject(listwatch.Event{
			Type: listwatch.Modified, Version: o.db.Version() + 1,
			Object: &listwatch.Object{Key: listwatch.Key{Name: "x"}},
		})
		time.Sleep(downtime)
		o.put("b", "red")
		time.Sleep(downtime)
		synctest.Wait()
		if why != "doubted" {
			t.Errorf("the last state was requested because it was %q, want doubted", why)
		}
	})
}

// Without an epoch, nothing but its lower version shows that the upstream has another history.
func TestVersionsThatWentBackHaveNoDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := newFaultySource(openAtVersion(t, 100))
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		has := stateOf(t, r)
		restored := openCollection(t, memory.Open(memory.Options{StartVersion: 50}), "Thing")
		upstream.Replace(noEpoch{noEpochBookmarks{restored}})
		upstream.Cut(&listwatch.Error{Code: listwatch.Expired})
		time.Sleep(5 * downtime)
		o := &origin{TB: t, Collection: restored}
		for i := range 60 {
			o.put(fmt.Sprint("o", i), "red")
		}
		time.Sleep(downtime)
		if lines, isDifference := since(t, r, has); isDifference || len(lines) != 60 {
			t.Errorf("got %d events, a difference: %v, want the whole state of 60 objects", len(lines), isDifference)
		}
	})
}
