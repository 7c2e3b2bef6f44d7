package informers

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// The backoff of client-go's Reflector starts at 0.8 seconds, doubles with each failure up
// to 30 seconds, and starts over after a stream that was healthy for two minutes.
const (
	firstBackoff = 800 * time.Millisecond
	// maxBackoff is slightly longer than the limit of 30 seconds.
	maxBackoff = 31 * time.Second
	// tolerance is the time by which a delay may exceed the backoff. A client adds the time in
	// Retry-After, and a short delay after a stream that ends at once.
	tolerance = 2 * time.Second
)

func informerBackoff(e *harness.Env) {
	expired := &listwatch.Error{Code: listwatch.Expired, Message: "too old"}
	for name, step := range map[string]http.HandlerFunc{
		"410": e.SendError(expired),
		"429": harness.Respond(429, "", "Retry-After", "1"),
		"500": harness.Respond(500, "oops"),
		"503": harness.Respond(503, "away"),
	} {
		const failures = 20
		steps := make([]http.HandlerFunc, failures)
		for i := range steps {
			steps[i] = step
		}
		d := listwatch.Description{APIVersion: "v1", Kind: "Thing"}
		synced := listwatch.NewSynced(d, listwatch.State{Version: 7}, 0)
		healthy := make(chan struct{})
		script, at := e.ServeSequence(append(steps, e.SendThenHold(healthy, synced), step)...)
		c := e.CacheOf(e.Remote(at))
		e.RunCache(c)
		<-time.After(20 * time.Minute)
		close(healthy)
		<-time.After(10 * time.Minute)
		wantGaps(e, name, gapsBetween(script.RequestTimes()), failures)
	}

	c := e.CopyCollection()
	c.ResetAll(true)
	e.RunCache(c.Cache)
	<-time.After(20 * time.Minute)
	c.AllowDials()
	c.Settle()
	refused := gapsBetween(c.DialTimes())
	wantGrowth(e, "refused", refused[:len(refused)-1])
	e.WantCopy(c.Cache)
}

// gapsBetween returns the time between each request and the next.
func gapsBetween(times []time.Time) []time.Duration {
	var all []time.Duration
	for i := 1; i < len(times); i++ {
		all = append(all, times[i].Sub(times[i-1]))
	}
	return all
}

// wantGaps checks the gaps between requests. failures is the number of requests that failed at
// first. The next request opened a healthy stream, and later requests failed again.
func wantGaps(e *harness.Env, name string, gaps []time.Duration, failures int) {
	e.Helper()
	if len(gaps) <= failures+2 {
		e.Errorf("%s: %d requests in half an hour, want %d failures, a success and at least two more requests",
			name, len(gaps)+1, failures)
		return
	}
	wantGrowth(e, name, gaps[:failures])
	if after := gaps[failures+1]; after > 4*firstBackoff+tolerance {
		e.Errorf("%s: waited %v after a stream that was healthy for minutes, want about %v at most: a healthy stream "+
			"resets the backoff", name, after, 4*firstBackoff)
	}
}

// wantGrowth checks that the gaps between failures grow up to the limit, and that they are
// random.
func wantGrowth(e *harness.Env, name string, gaps []time.Duration) {
	e.Helper()
	distinct := map[time.Duration]bool{}
	var early, late time.Duration
	for i, gap := range gaps {
		distinct[gap] = true
		if i < 3 {
			early = max(early, gap)
		} else if i >= 6 {
			late = max(late, gap)
		}
	}
	// With full jitter, the late delays (at least 14) are random up to 30 s, and the early ones are
	// at most 3.2 s. The probability that no late delay is longer than the longest early one is
	// less than 1 in 100 trillion.
	if early > 4*firstBackoff+tolerance || late <= early || late > maxBackoff+tolerance {
		e.Errorf("%s: waited %v, want delays that start at %v and double up to 30 s", name, gaps, firstBackoff)
	}
	if len(distinct) < len(gaps)/2 {
		e.Errorf("%s: waited %v, want random delays, so that clients do not all reconnect together", name, gaps)
	}
}
