package client

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
)

// timeout/client-idle.
func TestSilenceDropsTheStreamAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(says(added("a", 2)), says(added("a", 2), added("b", 3)))
		var lost []error
		r := remote(p)
		r.Trace = &Trace{Lost: func(err error, _ time.Duration) { lost = append(lost, err) }}
		wantEvents(t, watch(t, r, from(1)), "ADDED/a@2 ADDED/b@3")
		if wait := waits(p)[0]; wait < DefaultIdleTimeout || wait > DefaultIdleTimeout+time.Second {
			t.Errorf("resumed after %v, want %v", wait, DefaultIdleTimeout)
		}
		synctest.Wait()
		if len(lost) != 1 || !errors.Is(lost[0], listwatch.Unavailable) {
			t.Errorf("told of %v, want one %v", lost, listwatch.Unavailable)
		}
	})
}

func TestTrafficWithoutEventsKeepsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(says(2*time.Minute, alive{}, 2*time.Minute, alive{}, 2*time.Minute, added("a", 2)))
		wantEvents(t, watch(t, remote(p), from(1)), "ADDED/a@2")
		if n := len(p.seen()); n != 1 {
			t.Errorf("dialled %d times, want 1", n)
		}
	})
}

func TestIdleIsConfigurable(t *testing.T) {
	for idle, want := range map[time.Duration]int{10 * time.Second: 2, -1: 1} {
		synctest.Test(t, func(t *testing.T) {
			p := inTurn(says(added("a", 2)), says(time.Second, added("b", 3), alive{}))
			r := remote(p)
			r.IdleTimeout = idle
			watch(t, r, from(1))
			time.Sleep(15 * time.Second)
			if n := len(p.seen()); n != want {
				t.Errorf("idle %v: dialled %d times, want %d", idle, n, want)
			}
		})
	}
}

func (w *watcher) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// slow/client-backpressure.
func TestASlowReaderBoundsTheQueueAndIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 3 * queueEvents
		steps := make([]any, events)
		for i := range steps {
			steps[i] = added("a", i+2)
		}
		p := always(says(steps...))
		w := watch(t, remote(p), from(1))
		time.Sleep(time.Hour)
		if n := w.(*watcher).waiting(); n != queueEvents {
			t.Errorf("%d events wait for the reader, want %d", n, queueEvents)
		}
		batch := make([]listwatch.Event, 10)
		for version := listwatch.Version(2); version < events+2; {
			n, err := w.Next(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch[:n] {
				if e.Version != version {
					t.Fatalf("got version %d, want %d", e.Version, version)
				}
				version++
			}
		}
		if n := len(p.seen()); n != 1 {
			t.Errorf("dialled %d times, want 1", n)
		}
	})
}

func TestAListThatGoesSilentIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := remote()
		r.Network.Dial = mute(t)
		start := time.Now()
		_, err := r.List(t.Context(), listwatch.Query{})
		if !errors.Is(err, listwatch.Unavailable) || time.Since(start) > DefaultIdleTimeout {
			t.Errorf("got error %v after %v", err, time.Since(start))
		}
		r.Close()
	})
}
