package kubetest

import (
	"net/http"
	"sync"
	"testing"
	"time"
)

const (
	// maxAtOnce is the number of requests at one instant that make a loop. A test that sends them
	// on purpose should let time pass in between.
	maxAtOnce = 20_000
	// loopDelay is the duration of each request after a loop was found, so that the test can end.
	loopDelay = time.Millisecond
)

// A loopDetector fails a test in which a controller sends requests without a pause. In a bubble of
// testing/synctest, time passes only while nothing is done, so that the test would never end.
type loopDetector struct {
	t testing.TB

	mu sync.Mutex
	// Guarded by mu.
	instant time.Time
	total   int
	counts  map[string]int // by method and path
	found   bool
}

// handler wraps next. It counts each request, and delays it after a loop was found.
func (l *loopDetector) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.count(r.Method + " " + r.URL.Path) {
			select {
			case <-time.After(loopDelay):
			case <-r.Context().Done():
			}
		}
		next.ServeHTTP(w, r)
	})
}

// count counts a request, and reports whether a loop was found.
func (l *loopDetector) count(request string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.counts == nil || !now.Equal(l.instant) {
		l.instant, l.total, l.counts = now, 0, map[string]int{}
	}
	l.total++
	l.counts[request]++
	if l.total < maxAtOnce || l.found {
		return l.found
	}
	l.found = true
	l.t.Errorf("kubetest: a loop without a pause: %d requests at %s, in which time does not pass; the most frequent are "+
		"%s. From now on each request takes %v",
		l.total, l.instant.Format(time.RFC3339Nano), mostFrequent(l.counts), loopDelay)
	return true
}
