package client

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/internal/testkit"
)

// delays returns the delay between each request and the request before it.
func delays(p *scriptedTransport) []time.Duration {
	var delays []time.Duration
	requests := p.requests()
	for i := range requests[1:] {
		delays = append(delays, requests[i+1].at.Sub(requests[i].at))
	}
	return delays
}

func TestBackoffDoublesAndResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := refuses(statusError(503))
		p := sequence(sends(errConnectionLost), unavailable, unavailable, unavailable, unavailable, unavailable,
			unavailable, unavailable, unavailable,
			sends(2*time.Minute, errConnectionLost), unavailable, sends())
		testkit.Watch(t, newRemote(p), watchFrom(1))
		time.Sleep(time.Hour)
		got := delays(p)[:11]
		bound := 800 * time.Millisecond
		for i, wait := range got[:9] {
			if limit := min(bound, 30*time.Second) + reflector.MinDelayAfterBrief; wait <= 0 || wait > limit {
				t.Errorf("waited %v before request %d, want at most %v", wait, i+2, limit)
			}
			bound *= 2
		}
		if wait := got[9] - 2*time.Minute; wait > 800*time.Millisecond {
			t.Errorf("waited %v after a long response, want at most 0.8 s", wait)
		}
		if got[10] > 1600*time.Millisecond {
			t.Errorf("waited %v after the next failure, want at most 1.6 s", got[10])
		}
	})
}

// Conformance case error/retry-after.
func TestRetryAfterIsObeyedWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := statusError(503)
		busy.Details = &listwatch.Details{RetryAfter: 40 * time.Second}
		p := sequence(sends(added("a", 2), errConnectionLost), refuses(busy), sends())
		testkit.Watch(t, newRemote(p), watchFrom(1))
		time.Sleep(time.Hour)
		if wait := delays(p)[1]; wait <= 40*time.Second || wait > 42*time.Second {
			t.Errorf("waited %v, want 40 to 42 s", wait)
		}
	})
}

func TestBriefResponsesDelayTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(sends(io.EOF))
		r := newRemote(p)
		r.Backoff = listwatch.Backoff{Min: time.Millisecond, Max: time.Millisecond}
		w := testkit.Watch(t, r, watchFrom(1))
		time.Sleep(5 * time.Second)
		w.Close()
		if least := slices.Min(delays(p)); least < reflector.MinDelayAfterBrief {
			t.Errorf("waited %v, want at least %v", least, reflector.MinDelayAfterBrief)
		}
	})
}

func TestCleanEndsDoNotIncreaseBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(sends(time.Minute, io.EOF))
		testkit.Watch(t, newRemote(p), watchFrom(1))
		time.Sleep(time.Hour)
		if longest := slices.Max(delays(p)); longest > time.Minute+800*time.Millisecond {
			t.Errorf("waited %v after a clean end, want at most 0.8 s", longest-time.Minute)
		}
	})
}

func TestBackoffIsConfigurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(refuses(statusError(503)))
		p.scriptFor = func(n int) script {
			if n == 0 {
				return sends(added("a", 2), errConnectionLost)
			}
			return refuses(statusError(503))
		}
		r := newRemote(p)
		r.Backoff = listwatch.Backoff{Min: time.Millisecond, Max: 4 * time.Millisecond}
		testkit.Watch(t, r, watchFrom(1))
		time.Sleep(time.Second)
		if longest := slices.Max(delays(p)); longest > 4*time.Millisecond {
			t.Errorf("waited %v, want at most 4 ms", longest)
		}
	})
}

// Conformance case drop/storm.
func TestReconnectsAreSpreadByJitter(t *testing.T) {
	const clients = 1000
	for _, end := range []error{errConnectionLost, io.EOF} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			// For each client, reconnected holds the time from endTime to the reconnect.
			var reconnected []time.Duration
			endTime := time.Now().Add(2 * time.Minute)
			for range clients {
				w := testkit.Watch(t, newRemote(&scriptedTransport{scriptFor: func(n int) script {
					if n == 0 {
						return sends(added("a", 2), time.Until(endTime), end)
					}
					mu.Lock()
					defer mu.Unlock()
					reconnected = append(reconnected, time.Since(endTime))
					return sends()
				}}), watchFrom(1))
				defer w.Close()
			}
			time.Sleep(4 * time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if len(reconnected) != clients {
				t.Fatalf("%d of %d clients reconnected", len(reconnected), clients)
			}
			const slot, slots = 50 * time.Millisecond, 16
			var perSlot [slots]int
			for _, d := range reconnected {
				perSlot[min(int(d/slot), slots-1)]++
			}
			// The mean is 62 clients per slot. The limit is twice that, 8 standard
			// deviations above the mean.
			if most := slices.Max(perSlot[:]); most > 2*clients/slots {
				t.Errorf("%d of %d clients reconnected within %v: %v", most, clients, slot, perSlot)
			}
		})
	}
}

// Even if tokens expire after six seconds, backoff must not keep the watch closed half of the
// time.
func TestShortCredentialsCostNoBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lifetime = 6 * time.Second
		p := always(sends(lifetime, &listwatch.Error{Code: listwatch.Unauthorized, Remote: true}))
		r := newRemote(p)
		r.Header = func(context.Context, bool) (http.Header, error) { return nil, nil }
		testkit.Watch(t, r, watchFrom(1))
		time.Sleep(5 * time.Minute)
		for i, wait := range delays(p) {
			if wait > lifetime+800*time.Millisecond {
				t.Errorf("waited %v between requests %d and %d, want at most 0.8 s after the end", wait-lifetime,
					i+1, i+2)
			}
		}
	})
}
