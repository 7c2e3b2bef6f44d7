package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
)

// slowSource is a source whose watches wait before they return each event.
type slowSource struct {
	listwatch.Source
	delay time.Duration
}

func (s slowSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return slowWatcher{w, s.delay}, nil
}

func (s slowSource) Describe() listwatch.Description { return listwatch.Describe(s.Source) }

type slowWatcher struct {
	listwatch.Watcher
	delay time.Duration
}

func (w slowWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	select {
	case <-time.After(w.delay):
		return w.Watcher.Next(ctx, dst[:1])
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestSlowBackfillIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		for i := range 100 {
			o.put("a", fmt.Sprint("red", i))
		}
		newest := o.put("a", "blue")
		r := openRelay(t, slowSource{o, time.Second}, relay.Options{})
		for {
			page, err := r.List(t.Context(), listwatch.Query{Start: listwatch.StartAny})
			if errors.Is(err, listwatch.Unavailable) {
				continue // the backfill has not finished
			}
			if err != nil || page.Version < newest.Version {
				t.Errorf("the first list has version %d and error %v, want at least version %d", page.Version, err,
					newest.Version)
			}
			break
		}
		if s := r.Health(); s.Floor != o.start {
			t.Errorf("the history starts at version %d, want %d", s.Floor, o.start)
		}
	})
}

// kube-apiserver sends the headers of a watch before it refuses the version with an event.
func TestBackfillIsRepeatedAfterALateRefusal(t *testing.T) {
	for late, want := range []listwatch.Version{40, 40, 100} {
		t.Run(fmt.Sprint(late, " late"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				for i := range 100 {
					o.put("a", fmt.Sprint(i))
				}
				upstream := newFaultySource(o)
				upstream.failAt(o.start+40, &listwatch.Error{Code: listwatch.Expired})
				upstream.failLate(late)
				r := openRelay(t, upstream, relay.Options{})
				time.Sleep(downtime) // reads would not wait for two late refusals
				if got := awaitReady(t, r).Health().Floor; got != o.start+want {
					t.Errorf("the history starts %d versions after the origin's, want %d", got-o.start, want)
				}
			})
		})
	}
}

func TestBackfillOfNewEpochHidesOldState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		restarted := openOrigin(t)
		time.Sleep(time.Hour) // so that the second memory store has higher versions
		old := openOrigin(t)
		old.put("a", "red")
		for i := range 8 {
			restarted.put("b", fmt.Sprint("blue", i))
		}
		upstream := newFaultySource(old)
		r := awaitReady(t, openRelay(t, slowSource{upstream, 300 * time.Millisecond}, relay.Options{}))
		upstream.Replace(restarted)
		upstream.Cut(&listwatch.Error{Code: listwatch.Expired})
		for start := time.Now(); time.Since(start) < downtime; time.Sleep(100 * time.Millisecond) {
			page, err := r.List(t.Context(), listwatch.Query{})
			if err == nil && (len(page.Items) != 1 || page.Items[0].Key.Name != "b") {
				t.Fatalf("after %v the newest state is %v at version %d, want the state of the new origin",
					time.Since(start), page.Items[0].Key, page.Version)
			}
		}
		if page := mustList(t, r, listwatch.Query{}); page.Items[0].Key.Name != "b" {
			t.Errorf("the state is %v, want the state of the new origin", page.Items)
		}
	})
}

func TestLagIsKnownFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		r := openRelay(t, upstream,
			relay.Options{Trace: &relay.Trace{Replaced: func(listwatch.Version, int,
				string,
			) {
				upstream.setDown(errDown)
			}}})
		awaitReady(t, r)
		time.Sleep(downtime)
		if s := r.Health(); s.Lag < downtime || s.Lag > downtime+5*time.Second {
			t.Errorf("the lag is %v, want about %v: the upstream failed when the relay had its state", s.Lag, downtime)
		}
	})
}

func TestListAwaitsVersionOfContinueToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		r := awaitReady(t, openRelay(t, slowSource{o, time.Second}, relay.Options{BackfillVersions: -1}))
		time.Sleep(downtime)
		o.put("b", "red")
		page := mustList(t, o, listwatch.Query{Limit: 1})
		rest, err := r.List(t.Context(), listwatch.Query{Continue: page.Continue})
		if err != nil || rest.Version != page.Version || len(rest.Items) != 1 {
			t.Errorf("the second page has %d objects at version %d, error %v; want 1 at version %d", len(rest.Items),
				rest.Version, err, page.Version)
		}
	})
}

func TestNewestReadsSeeWritesAfterRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := newFaultySource(openAtVersion(t, 100))
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		older := memory.Open(memory.Options{StartVersion: 50})
		o := &origin{t, openCollection(t, older, "Thing"), older, 50}
		upstream.Replace(noEpoch{noEpochBookmarks{o}})
		upstream.Cut(errDown)
		o.put("a", "red")
		// The relay waits a minute for version 100, and its next attempts can be 30 s apart.
		for start := time.Now(); time.Since(start) < 5*downtime; time.Sleep(time.Second) {
			if page, err := r.List(t.Context(), listwatch.Query{}); err == nil && len(page.Items) != 1 {
				t.Fatalf("after %v the newest state has version %d and lacks an acknowledged write", time.Since(start),
					page.Version)
			}
		}
		if page := mustList(t, r, listwatch.Query{}); page.Version != 51 {
			t.Errorf("the state has version %d, want 51", page.Version)
		}
	})
}

func TestHealthShowsTheProgressOfAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		for i := range 20 {
			o.put(fmt.Sprint("thing-", i), "red")
		}
		r := openRelay(t, slowSource{o, time.Second}, relay.Options{BackfillVersions: -1})
		for seconds := range 10 {
			time.Sleep(time.Second)
			synctest.Wait()
			if h := r.Health(); h.Ready || h.Objects != seconds+1 {
				t.Errorf("after %d s: ready %v, %d objects received", seconds+1, h.Ready, h.Objects)
			}
		}
		time.Sleep(15 * time.Second)
		if h := r.Health(); !h.Ready || h.Objects != 20 {
			t.Errorf("after 25 s: ready %v, %d objects", h.Ready, h.Objects)
		}
	})
}
