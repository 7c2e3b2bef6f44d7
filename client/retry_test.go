package client

import (
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// waits returns how long it was from each dial to the next.
func waits(p *peer) []time.Duration {
	var waits []time.Duration
	seen := p.seen()
	for i := range seen[1:] {
		waits = append(waits, seen[i+1].at.Sub(seen[i].at))
	}
	return waits
}

func TestBackoffDoublesUpToItsMaximumAndForgetsWhenHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := refuses(answered(503))
		p := inTurn(says(errCut), dead, dead, dead, dead, dead, dead, dead, dead, says(2*time.Minute, errCut), dead, says())
		watch(t, remote(p), from(1))
		time.Sleep(time.Hour)
		got := waits(p)[:11]
		bound := 800 * time.Millisecond
		for i, wait := range got[:9] {
			if limit := min(bound, 30*time.Second) + reflector.MinDelayAfterBrief; wait <= 0 || wait > limit {
				t.Errorf("waited %v before try %d, want at most %v", wait, i+2, limit)
			}
			bound *= 2
		}
		if wait := got[9] - 2*time.Minute; wait > 800*time.Millisecond {
			t.Errorf("waited %v after a healthy stream, want at most 0.8 s", wait)
		}
		if got[10] > 1600*time.Millisecond {
			t.Errorf("waited %v after that, want at most 1.6 s", got[10])
		}
	})
}

// error/retry-after.
func TestRetryAfterIsWaitedForAndSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := answered(503)
		busy.Details = &listwatch.Details{RetryAfter: 40 * time.Second}
		p := inTurn(says(added("a", 2), errCut), refuses(busy), says())
		watch(t, remote(p), from(1))
		time.Sleep(time.Hour)
		if wait := waits(p)[1]; wait <= 40*time.Second || wait > 42*time.Second {
			t.Errorf("waited %v, want 40 s and a little more", wait)
		}
	})
}

func TestStreamsThatEndAtOnceAreNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(says(io.EOF))
		r := remote(p)
		r.Backoff = listwatch.Backoff{Min: time.Millisecond, Max: time.Millisecond}
		w := watch(t, r, from(1))
		time.Sleep(5 * time.Second)
		w.Close()
		if least := slices.Min(waits(p)); least < reflector.MinDelayAfterBrief {
			t.Errorf("waited only %v", least)
		}
	})
}

func TestCleanEndsDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(says(time.Minute, io.EOF))
		watch(t, remote(p), from(1))
		time.Sleep(time.Hour)
		if longest := slices.Max(waits(p)); longest > time.Minute+800*time.Millisecond {
			t.Errorf("waited %v after a clean end, want at most 0.8 s", longest-time.Minute)
		}
	})
}

func TestBackoffIsConfigurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(refuses(answered(503)))
		p.answer = func(n int) script {
			if n == 0 {
				return says(added("a", 2), errCut)
			}
			return refuses(answered(503))
		}
		r := remote(p)
		r.Backoff = listwatch.Backoff{Min: time.Millisecond, Max: 4 * time.Millisecond}
		watch(t, r, from(1))
		time.Sleep(time.Second)
		if longest := slices.Max(waits(p)); longest > 4*time.Millisecond {
			t.Errorf("waited %v, want at most 4 ms", longest)
		}
	})
}

// drop/storm.
func TestClientsThatWereCutTogetherComeBackApart(t *testing.T) {
	const clients = 1000
	for _, end := range []error{errCut, io.EOF} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var back []time.Duration
			cut := time.Now().Add(2 * time.Minute)
			for range clients {
				w := watch(t, remote(&peer{answer: func(n int) script {
					if n == 0 {
						return says(added("a", 2), time.Until(cut), end)
					}
					mu.Lock()
					defer mu.Unlock()
					back = append(back, time.Since(cut))
					return says()
				}}), from(1))
				defer w.Close()
			}
			time.Sleep(4 * time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if len(back) != clients {
				t.Fatalf("%d of %d came back", len(back), clients)
			}
			const slot, slots = 50 * time.Millisecond, 16
			var wave [slots]int
			for _, d := range back {
				wave[min(int(d/slot), slots-1)]++
			}
			// Even spread is 62 a slot; more than twice that is 8 standard deviations off.
			if most := slices.Max(wave[:]); most > 2*clients/slots {
				t.Errorf("%d of %d came back within %v: %v", most, clients, slot, wave)
			}
		})
	}
}
