package client

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/eventqueue"
	"github.com/listwatch/listwatch/internal/testkit"
)

// Conformance case timeout/client-idle.
func TestIdleTimeoutReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sequence(sends(added("a", 2)), sends(added("a", 2), added("b", 3)))
		var lost []error
		r := newRemote(p)
		r.Trace = &Trace{Lost: func(err error, _ time.Duration) { lost = append(lost, err) }}
		wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2 ADDED/b@3")
		if wait := delays(p)[0]; wait < DefaultIdleTimeout || wait > DefaultIdleTimeout+time.Second {
			t.Errorf("the client sent the next request after %v, want %v", wait, DefaultIdleTimeout)
		}
		synctest.Wait()
		if len(lost) != 1 || !errors.Is(lost[0], listwatch.Unavailable) {
			t.Errorf("Lost was called with %v, want one %v", lost, listwatch.Unavailable)
		}
	})
}

func TestActivityKeepsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(sends(2*time.Minute, activity{}, 2*time.Minute, activity{}, 2*time.Minute, added("a", 2)))
		wantEvents(t, testkit.Watch(t, newRemote(p), watchFrom(1)), "ADDED/a@2")
		if n := len(p.requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}

func TestIdleTimeoutIsConfigurable(t *testing.T) {
	for timeout, want := range map[time.Duration]int{10 * time.Second: 2, -1: 1} {
		synctest.Test(t, func(t *testing.T) {
			p := sequence(sends(added("a", 2)), sends(time.Second, added("b", 3), activity{}))
			r := newRemote(p)
			r.IdleTimeout = timeout
			testkit.Watch(t, r, watchFrom(1))
			time.Sleep(15 * time.Second)
			if n := len(p.requests()); n != want {
				t.Errorf("timeout %v: %d requests, want %d", timeout, n, want)
			}
		})
	}
}

// A check may be in progress while the timer is stopped.
func TestStoppedIdleTimerStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdleTimer(time.Minute, func() { t.Error("the timer has expired") })
		i.stop()
		i.check()
		time.Sleep(time.Hour)
	})
}

// Conformance case slow/client-backpressure.
func TestSlowReaderFillsTheQueueOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 3 * eventqueue.MaxEvents
		steps := make([]any, events)
		for i := range steps {
			steps[i] = added("a", i+2)
		}
		p := always(sends(steps...))
		w := testkit.Watch(t, newRemote(p), watchFrom(1))
		time.Sleep(time.Hour)
		batch := make([]listwatch.Event, events)
		for version := listwatch.Version(2); version < events+2; {
			n, err := w.Next(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			if version == 2 && n != eventqueue.MaxEvents {
				t.Errorf("%d events were queued, want %d", n, eventqueue.MaxEvents)
			}
			for _, e := range batch[:n] {
				if e.Version != version {
					t.Fatalf("got version %d, want %d", e.Version, version)
				}
				version++
			}
		}
		if n := len(p.requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}

func TestSilentListTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote()
		r.Network.Dial = dialSilent(t)
		start := time.Now()
		_, err := r.List(t.Context(), listwatch.Query{})
		if !errors.Is(err, listwatch.Unavailable) || time.Since(start) > DefaultIdleTimeout {
			t.Errorf("got error %v after %v, want %v after at most %v", err, time.Since(start), listwatch.Unavailable,
				DefaultIdleTimeout)
		}
		r.Close()
	})
}
