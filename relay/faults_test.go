package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
)

var errDown = &listwatch.Error{Code: listwatch.Unavailable, Message: "the network is down"}

// downtime is longer than the delay between two attempts of a relay.
const downtime = time.Minute

func TestRelayResumesAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		w := testkit.Watch(t, r, fromNow)
		o.put("a", "red")
		testkit.Read(t, w, 1)
		upstream.setDown(errDown)
		o.put("a", "blue")
		o.remove("a")
		time.Sleep(downtime)
		upstream.setDown(nil)
		time.Sleep(downtime)
		if events := testkit.Read(t, w, 2); events[0].Type != listwatch.Modified ||
			events[1].Type != listwatch.Deleted {
			t.Errorf("got %v, want MODIFIED and DELETED", events)
		}
	})
}

func TestRelayServesOldStateDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		o.put("a", "red")
		mustList(t, r, listwatch.Query{})
		if s := r.Health(); !s.Ready || !s.Following || s.Lag < 0 || s.Lag > 10*time.Second || s.Err != nil {
			t.Errorf("before the outage: %+v", s)
		}
		w := testkit.Watch(t, r, fromNow)
		upstream.setDown(errDown)
		time.Sleep(downtime)
		if s := r.Health(); !s.Ready || s.Following || s.Lag < downtime || s.Err == nil ||
			time.Since(s.LastHeard) < downtime-10*time.Second {
			t.Errorf("during the outage: %+v", s)
		}
		if page := mustList(t, r, listwatch.Query{Start: listwatch.StartAny}); len(page.Items) != 1 {
			t.Errorf("List of any state returned %d objects, want 1", len(page.Items))
		}
		if _, err := r.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) ||
			!strings.Contains(err.Error(), "the network is down") {
			t.Errorf("List of the newest state: got error %v, want Unavailable with the reason", err)
		}
		if _, err := r.Watch(t.Context(), everything); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("Watch from the newest state: got error %v, want Unavailable", err)
		}
		upstream.setDown(nil)
		time.Sleep(downtime)
		if s := r.Health(); !s.Following || s.Lag > 10*time.Second || s.Err != nil {
			t.Errorf("after the outage: %+v", s)
		}
		o.put("b", "red")
		testkit.Read(t, w, 1)
	})
}

func TestNewestReadsOfRemovedCollectionAreNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		o.put("a", "red")
		mustList(t, r, listwatch.Query{})
		upstream.setDown(&listwatch.Error{Code: listwatch.NotFound, Message: "there is no such resource"})
		if _, err := r.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.NotFound) ||
			!strings.Contains(err.Error(), "no such resource") {
			t.Errorf("List of the newest state: got error %v, want NotFound with the reason", err)
		}
		if _, err := r.Watch(t.Context(), everything); !errors.Is(err, listwatch.NotFound) {
			t.Errorf("Watch from the newest state: got error %v, want NotFound", err)
		}
		if page := mustList(t, r, listwatch.Query{Start: listwatch.StartAny}); len(page.Items) != 1 {
			t.Errorf("List of any state returned %d objects, want 1", len(page.Items))
		}
	})
}

func TestReadsWaitForTheFirstState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		upstream.setDown(errDown)
		r := openRelay(t, upstream, relay.Options{})
		start := time.Now()
		_, err := r.List(t.Context(), listwatch.Query{Start: listwatch.StartAny})
		if took := time.Since(start); !errors.Is(err, listwatch.Unavailable) || took != 3*time.Second ||
			!strings.Contains(err.Error(), "the network is down") {
			t.Errorf("got error %v after %v; want Unavailable with the reason after 3 s", err, took)
		}
		if listwatch.AsError(err).RetryAfter() == 0 {
			t.Error("the error has no RetryAfter")
		}
		if s := r.Health(); s.Ready || s.Lag >= 0 {
			t.Errorf("the health is %+v, want Ready false and a negative Lag", s)
		}
		got := make(chan error)
		upstream.setDown(nil)
		go func() {
			for {
				w, err := r.Watch(t.Context(), everything)
				if errors.Is(err, listwatch.Unavailable) {
					continue
				}
				w.Close()
				got <- err
				return
			}
		}()
		if err := <-got; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > downtime {
			t.Errorf("the watch was open after %v, want at most %v", took, downtime)
		}
	})
}

// loseHistory writes to o while the relay cannot reach o, and compacts the history of these writes.
func (o *origin) loseHistory(upstream *faultySource) {
	upstream.setDown(errDown)
	o.put("missed", "red")
	o.remove("missed")
	o.put("a", "blue")
	o.db.Compact()
	<-time.After(downtime)
	upstream.setDown(nil)
	<-time.After(downtime)
}

func TestLostHistoryExpiresWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		before := mustList(t, r, listwatch.Query{}).Version
		upToDate, lagging := testkit.Watch(t, r, fromNow), testkit.Watch(t, r, everything)
		o.loseHistory(upstream)
		for name, w := range map[string]listwatch.Watcher{"up-to-date": upToDate, "lagging": lagging} {
			if _, err := readToEnd(t, w); !errors.Is(err, listwatch.Expired) {
				t.Errorf("the %s watcher got error %v, want Expired", name, err)
			}
		}
		if _, err := r.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: before}); !errors.Is(err,
			listwatch.Expired) {
			t.Errorf("Watch from before the loss: got error %v, want Expired", err)
		}
		page := mustList(t, r, listwatch.Query{})
		if len(page.Items) != 1 || page.Items[0].Labels["color"] != "blue" || page.Version != o.db.Version() {
			t.Errorf("the state is %v at version %d, want the state of the origin at version %d", page.Items,
				page.Version, o.db.Version())
		}
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: page.Version})
		o.put("b", "red")
		if e := testkit.Read(t, w, 1)[0]; e.Type != listwatch.Added {
			t.Errorf("got %s, want ADDED", e.Type)
		}
	})
}

func TestStateOfSameVersionKeepsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{BackfillVersions: -1}))
		w := testkit.Watch(t, r, fromNow)
		upstream.Cut(&listwatch.Error{Code: listwatch.Expired})
		time.Sleep(downtime)
		o.put("a", "blue")
		if e := testkit.Read(t, w, 1)[0]; e.Type != listwatch.Modified {
			t.Errorf("got %s, want MODIFIED", e.Type)
		}
	})
}

func TestStateBeforeProbedVersionKeepsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		o.put("a", "red")
		upstream, probe := newFaultySource(o), newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{ProbeSource: probe}))
		w := testkit.Watch(t, r, fromNow)
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"x","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			probe.inject(listwatch.NewBookmark(listwatch.Description{}, listwatch.State{Version: o.db.Version()}))
		})
		if page := mustList(t, r, listwatch.Query{}); page.Version != o.db.Version() {
			t.Fatalf("List returned version %d, want %d", page.Version, o.db.Version())
		}
		time.Sleep(2 * time.Second) // until the probe has ended
		if watches := len(probe.Watches()); watches != 1 {
			t.Errorf("%d watches of the probe source, want 1", watches)
		}
		upstream.Cut(&listwatch.Error{Code: listwatch.Expired})
		time.Sleep(downtime)
		o.put("a", "blue")
		if e := testkit.Read(t, w, 1)[0]; e.Type != listwatch.Modified {
			t.Errorf("got %s, want MODIFIED", e.Type)
		}
	})
}

func TestNewEpochExpiresWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		one := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		two := awaitReady(t, openRelay(t, one, relay.Options{}))
		w := testkit.Watch(t, two, fromNow)
		time.Sleep(time.Second) // so that the second memory store has higher versions
		restarted := openOrigin(t)
		restarted.put("b", "blue")
		upstream.Replace(restarted)
		// The watch of the old origin stays open. Only a read of the newest state detects
		// the new origin.
		if page := mustList(t, two, listwatch.Query{}); len(page.Items) != 1 || page.Items[0].Key.Name != "b" {
			t.Errorf("the state is %v, want the state of the new origin", page.Items)
		}
		if _, err := readToEnd(t, w); !errors.Is(err, listwatch.Expired) {
			t.Errorf("the watcher got error %v, want Expired", err)
		}
		for _, r := range []*relay.Relay{one, two} {
			if got, want := r.Describe().Epoch, restarted.db.Epoch(); got != want {
				t.Errorf("the epoch is %s, want %s", got, want)
			}
		}
	})
}

func TestOlderUpstreamStateIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := newFaultySource(openAtVersion(t, 100))
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		w := testkit.Watch(t, r, fromNow)
		upstream.Replace(openAtVersion(t, 50))
		upstream.Cut(&listwatch.Error{Code: listwatch.Expired})
		time.Sleep(5 * downtime)
		if _, err := readToEnd(t, w); !errors.Is(err, listwatch.Expired) ||
			!strings.Contains(err.Error(), "older state") {
			t.Errorf("the watcher got error %v, want Expired with the reason", err)
		}
		if page := mustList(t, r, listwatch.Query{}); page.Version != 50 {
			t.Errorf("the state has version %d, want 50", page.Version)
		}
	})
}

// noEpoch is a source without an epoch, like kube-apiserver.
type noEpoch struct{ listwatch.Source }

func (noEpoch) Describe() listwatch.Description { return listwatch.Description{Kind: "Thing"} }

// openAtVersion returns an empty collection at version v, without an epoch.
func openAtVersion(t *testing.T, v listwatch.Version) listwatch.Source {
	t.Helper()
	return noEpoch{noEpochBookmarks{openCollection(t, memory.Open(memory.Options{StartVersion: v}), "Thing")}}
}

// noEpochBookmarks removes the epoch from the bookmarks of a source.
type noEpochBookmarks struct{ listwatch.Source }

func (n noEpochBookmarks) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := n.Source.Watch(ctx, q)
	return noEpochWatcher{w}, err
}

type noEpochWatcher struct{ listwatch.Watcher }

func (w noEpochWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	for i, e := range dst[:n] {
		if e.Type == listwatch.Synced || e.Type == listwatch.Bookmark {
			d, at := listwatch.Description{Kind: "Thing", APIVersion: "v1"}, listwatch.State{Version: e.Version}
			if dst[i] = listwatch.NewBookmark(d, at); e.Type == listwatch.Synced {
				dst[i] = listwatch.NewSynced(d, at, 0)
			}
		}
	}
	return n, err
}

func TestInconsistentEventForcesNewState(t *testing.T) {
	for name, event := range map[string]func(o *origin) listwatch.Event{
		"MODIFIED for a missing object": func(o *origin) listwatch.Event {
			return listwatch.Event{
				Type: listwatch.Modified, Version: o.db.Version() + 1,
				Object: &listwatch.Object{Key: listwatch.Key{Name: "x"}},
			}
		},
		"ADDED for an existing object": func(o *origin) listwatch.Event {
			return listwatch.Event{
				Type: listwatch.Added, Version: o.db.Version() + 1,
				Object: &listwatch.Object{Key: listwatch.Key{Namespace: "default", Name: "a"}},
			}
		},
		"an object without a name": func(o *origin) listwatch.Event {
			return listwatch.Event{
				Type: listwatch.Added, Version: o.db.Version() + 1,
				Object: &listwatch.Object{Version: o.db.Version() + 1},
			}
		},
		"a second event of a version": func(o *origin) listwatch.Event {
			return listwatch.Event{
				Type: listwatch.Added, Version: o.db.Version(),
				Object: &listwatch.Object{Key: listwatch.Key{Name: "x"}},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				o.put("a", "red")
				upstream := newFaultySource(o)
				r := awaitReady(t, openRelay(t, upstream, relay.Options{BackfillVersions: -1}))
				w := testkit.Watch(t, r, fromNow)
				o.put("a", "blue")
				testkit.Read(t, w, 1)
				synctest.Wait()
				before := o.db.Version()
				upstream.inject(event(o))
				time.Sleep(time.Second)
				o.put("b", "red")
				time.Sleep(downtime)
				page := mustList(t, r, listwatch.Query{})
				if len(page.Items) != 2 {
					t.Errorf("the state has %d objects, want 2", len(page.Items))
				}
				if _, err := readToEnd(t, w); !errors.Is(err, listwatch.Expired) {
					t.Errorf("the watcher got error %v, want Expired", err)
				}
				if _, err := r.Watch(t.Context(),
					listwatch.Query{Start: listwatch.StartAt, Version: before}); !errors.Is(err, listwatch.Expired) {
					t.Errorf("Watch from version %d: got error %v, want Expired", before, err)
				}
			})
		})
	}
}

// If an event arrives after a probe has received a bookmark of a later version, readers at the
// bookmark's version lack the event. So no watch may resume from that version.
func TestWatchAfterLateEventExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		o.put("a", "red")
		upstream, probe := newFaultySource(o), newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{ProbeSource: probe}))
		late := o.db.Version() + 1
		for _, name := range []string{"x", "y"} {
			if _, err := other.Create(t.Context(),
				[]byte(`{"metadata":{"name":"`+name+`","namespace":"default"}}`)); err != nil {
				t.Fatal(err)
			}
		}
		reached := o.db.Version()
		time.AfterFunc(time.Second, func() {
			probe.inject(listwatch.NewBookmark(listwatch.Description{}, listwatch.State{Version: reached}))
		})
		if page := mustList(t, r, listwatch.Query{}); page.Version != reached {
			t.Fatalf("List returned version %d, want %d", page.Version, reached)
		}
		time.Sleep(2 * time.Second) // until the probe has ended
		upstream.inject(listwatch.Event{
			Type: listwatch.Added, Version: late,
			Object: &listwatch.Object{Key: listwatch.Key{Name: "x"}},
		})
		time.Sleep(downtime)
		if _, err := r.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: reached}); !errors.Is(err,
			listwatch.Expired) {
			t.Errorf("Watch from version %d: got error %v, want Expired", reached, err)
		}
	})
}

func TestMalformedEventIsNotSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		var lost []error
		r := awaitReady(t, openRelay(t, upstream,
			relay.Options{Trace: &relay.Trace{UpstreamLost: func(err error, _ time.Duration,
				_ bool,
			) {
				lost = append(lost, err)
			}}}))
		w := testkit.Watch(t, r, fromNow)
		malformed := &listwatch.Error{Code: listwatch.Corrupt, Message: "malformed object"}
		upstream.failAt(o.db.Version()+1, malformed)
		upstream.Cut(malformed)
		synctest.Wait()
		o.put("b", "red")
		time.Sleep(downtime)
		if page := mustList(t, r, listwatch.Query{}); len(page.Items) != 2 {
			t.Errorf("the state has %d objects, want 2", len(page.Items))
		}
		if n, err := readToEnd(t, w); n != 0 && !errors.Is(err, listwatch.Expired) {
			t.Errorf("the watcher got %d events and error %v, want Expired", n, err)
		}
		if len(lost) != 1 || !errors.Is(lost[0], listwatch.Corrupt) {
			t.Errorf("UpstreamLost was called with %v, want one Corrupt", lost)
		}
	})
}

func TestBackfillKeepsWatchesAfterCorruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		w := testkit.Watch(t, r, fromNow)
		upstream.Cut(&listwatch.Error{Code: listwatch.Corrupt, Message: "malformed object"})
		o.put("b", "red")
		if e := testkit.Read(t, w, 1)[0]; e.Type != listwatch.Added {
			t.Errorf("got %s, want ADDED", e.Type)
		}
	})
}

func TestConcurrentReadsShareOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{CheckInterval: -1}))
		before := len(upstream.Lists())
		var readers sync.WaitGroup
		for range 1000 {
			readers.Go(func() {
				if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
					t.Error(err)
				}
			})
		}
		readers.Wait()
		// The first reader lists the small state, and the others share the version.
		if watches, lists := len(upstream.Watches()), len(upstream.Lists()); lists-before > 4 || watches != 1 {
			t.Errorf("1000 readers caused %d lists and %d watches, want at most 4 and 1", lists-before, watches)
		}
	})
}

func TestRelayReopensEndedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		upstream := newFaultySource(o)
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		w := testkit.Watch(t, r, fromNow)
		upstream.Cut(io.EOF)
		o.put("a", "red")
		testkit.Read(t, w, 1)
	})
}

func TestBackfillStartsAtOldestWatchableVersion(t *testing.T) {
	for name, poller := range map[string]bool{"Poller": true, "other watcher": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				for i := range 100 {
					o.put("a", fmt.Sprint(i))
				}
				if poller {
					if r := awaitReady(t, openRelay(t, o, relay.Options{})); r.Health().Floor != o.start {
						t.Errorf("the history starts at version %d, want %d", r.Health().Floor, o.start)
					}
					return
				}
				upstream := newFaultySource(o)
				// Like kube-apiserver, this upstream can list versions that it cannot
				// watch.
				upstream.failAt(o.start+40, &listwatch.Error{Code: listwatch.Expired})
				var lost int
				r := awaitReady(t, openRelay(t, upstream,
					relay.Options{Trace: &relay.Trace{UpstreamLost: func(error, time.Duration, bool) { lost++ }}}))
				if got := r.Health().Floor; got != o.start+40 || lost > 0 {
					t.Errorf("the history starts %d versions after the origin's with %d failures, want %d and none",
						got-o.start, lost, 40)
				}
				if got := awaitReady(t,
					openRelay(t, upstream, relay.Options{BackfillVersions: 30})).Health().Floor; got != o.start+70 {
					t.Errorf("the history starts %d versions after the origin's, want %d", got-o.start, 70)
				}
			})
		})
	}
}
