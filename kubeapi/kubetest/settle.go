package kubetest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

const (
	// settleAfter is the time without activity after which an Env has settled.
	settleAfter = 10 * time.Second
	// settleLimit is the time after which Settle gives up.
	settleLimit = time.Hour
)

// Settle lets time pass until the program under test has nothing left to do but to wait: until no
// client has written, listed or started a watch for ten seconds. Retries, requeues and polls with
// shorter pauses have then ended. Gets do not count, and neither do requests for leases and events,
// because programs send these as long as they run. If the Env does not settle within an hour,
// Settle fails the test, and names the requests that clients repeat.
//
// Settle must be called in a bubble of testing/synctest, where all this takes no real time.
func (e *Env) Settle() {
	e.t.Helper()
	if !inBubble() {
		e.t.Fatal("kubetest: Settle must be called in a bubble of testing/synctest")
	}
	e.activity.reset()
	for start := time.Now(); ; synctest.Wait() {
		pause := e.activity.settles()
		switch {
		case pause <= 0:
			return
		case time.Since(start) > settleLimit:
			e.t.Fatalf("kubetest: the cluster has not settled within %v; the most frequent requests are %s",
				settleLimit, e.activity.mostFrequent())
		}
		time.Sleep(pause)
	}
}

// inBubble reports whether the caller is in a bubble of testing/synctest, whose time starts with
// the year 2000.
func inBubble() bool { return time.Now().Year() < 2020 }

// An activity records the requests that show that a client is at work.
type activity struct {
	mu sync.Mutex
	// Guarded by mu.
	last    time.Time      // the end of the last request
	running int            // the requests that have not ended
	counts  map[string]int // since reset, by method and path
}

// handler wraps next.
func (a *activity) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, isResource := requestOf(r)
		switch {
		case !isResource, q.verb == "get", q.resource == "leases", q.resource == "events":
		case q.verb == "watch":
			a.begin(r)
			a.end()
		default:
			a.begin(r)
			defer a.end()
		}
		next.ServeHTTP(w, r)
	})
}

func (a *activity) begin(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running++
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	a.counts[r.Method+" "+r.URL.Path]++
}

func (a *activity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	a.last = time.Now()
}

// reset restarts the measurement.
func (a *activity) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last, a.counts = time.Now(), map[string]int{}
}

// settles returns the time after which the Env will have settled if no further request arrives.
func (a *activity) settles() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running > 0 {
		return settleAfter
	}
	return settleAfter - time.Since(a.last)
}

func (a *activity) mostFrequent() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return mostFrequent(a.counts)
}

// mostFrequent names the three requests with the highest counts.
func mostFrequent(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var texts []string
	for _, name := range names[:min(3, len(names))] {
		texts = append(texts, fmt.Sprintf("%s (%d times)", name, counts[name]))
	}
	return strings.Join(texts, ", ")
}
