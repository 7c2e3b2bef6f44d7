package watchserver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// wantAfter is like want, and checks the time since start at which the last event arrives.
func (w *openWatch) wantAfter(start time.Time, delay time.Duration, lines ...string) {
	w.Helper()
	w.want(lines...)
	if got := time.Since(start); got != delay {
		w.Errorf("%s: %q arrived after %v, want %v", w.transport, lines, got, delay)
	}
}

func TestConflatedWatchSkipsSupersededStates(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		w := f.watch(c, "conflate=1s")
		time.Sleep(20 * time.Second)
		start := time.Now()
		f.put("a", nil)
		w.wantAfter(start, 0, "ADDED a") // after a silence, at once
		for range 10 {
			f.put("a", nil)
			f.put("b", nil)
		}
		w.wantAfter(start, time.Second, "ADDED b", "MODIFIED a", "MODIFIED b")
		f.put("c", nil)
		if _, err := f.flags.Delete(f.Context(), listwatch.Key{Name: "a"}, 0); err != nil {
			f.Fatal(err)
		}
		w.wantAfter(start, 2*time.Second, "ADDED c", "DELETED a")
		time.Sleep(time.Second)
		f.put("c", nil)
		w.wantAfter(start, 3*time.Second, "MODIFIED c")
	})
}

func TestPausedWatchIsNotWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		wakeups := func() uint64 { return f.flags.Store.(interface{ Stats() listwatch.Stats }).Stats().Wakeups }
		w := f.watch(f.Client("chunked"), "conflate=10s")
		synctest.Wait()
		f.put("a", nil)
		w.want("ADDED a")
		synctest.Wait()
		before := wakeups()
		for range 100 {
			f.put("a", nil)
			synctest.Wait()
		}
		if got := wakeups(); got != before {
			t.Errorf("a paused watch was woken %d times", got-before)
		}
		w.want("MODIFIED a")
	})
}

// With an interval of zero, only a reader that lags misses states.
func TestConflationWithoutAnIntervalDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		w := f.watch(f.Client("chunked"), "conflate=0")
		start := time.Now()
		for _, line := range []string{"ADDED a", "MODIFIED a", "MODIFIED a"} {
			synctest.Wait()
			f.put("a", nil)
			w.wantAfter(start, 0, line)
		}
	})
}

func TestConflationIsAnnounced(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		for query, want := range map[string]string{
			"": "", "conflate=": "", "conflate=1000ms": "1s", "conflate=0": "0s", "conflate=60s": "60s",
		} {
			if got := f.watch(c, query).Header().Get("Listwatch-Conflate"); got != want {
				f.Errorf("%s: %q: got %q, want %q", c.Name(), query, got, want)
			}
		}
		for _, query := range []string{"conflate=61s", "conflate=-1s", "conflate=1", "conflate=soon"} {
			if _, err := f.tryWatch(c, query); !errors.Is(err, listwatch.Invalid) {
				f.Errorf("%s: %q: got %v, want status 400", c.Name(), query, err)
			}
		}
	})
}

// A drain ends a pause, so that all events before it are sent.
func TestDrainEndsAPause(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		w := f.watch(c, "conflate=60s&allowWatchBookmarks=true")
		w.want("BOOKMARK") // the end of the initial events
		for i := range 200 {
			f.put(fmt.Sprint(i%2), nil)
		}
		go func() { _ = f.WatchServer.Drain(context.Background()) }() // returns when w has ended
		w.want("ADDED 0", "ADDED 1", "MODIFIED 0", "MODIFIED 1", "BOOKMARK")
		w.wantEnd()
	})
}

// The time of a watch may end within a pause. Its last bookmark then precedes the events that were
// not sent.
func TestConflatedWatchResumesAfterItsEnd(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		w := f.watch(c, "conflate=60s&allowWatchBookmarks=true&timeoutSeconds=5")
		w.want("BOOKMARK") // the end of the initial events
		f.put("a", nil)
		f.put("a", nil)
		versions := w.want("BOOKMARK", "BOOKMARK") // shortly before the end, and at the end
		w.wantEnd()
		w = f.watch(c, fmt.Sprintf("conflate=60s&resourceVersion=%d", versions[1]))
		w.want("ADDED a", "MODIFIED a")
	})
}

func TestConflatedWatchLeavesSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(s *watchserver.Server) { s.SharedCompression = watchserver.ShareAlways })
		c := f.Client("websocket")
		watches := []*openWatch{f.watchCompressed(c, "conflate=1s", "deflate"), f.watchCompressed(c, "", "deflate")}
		for range 5 {
			f.put("a", nil)
		}
		watches[1].want("ADDED a", "MODIFIED a", "MODIFIED a", "MODIFIED a", "MODIFIED a")
		watches[0].want("ADDED a", "MODIFIED a")
	})
}
