package limit

import (
	"net/http"
	"strconv"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// withLimits returns an Env with a new collection on a server with the given limits.
func withLimits(e *harness.Env, l watchserver.Limits) *harness.Env {
	e.Helper()
	e.Use(harness.Configurable)
	env := *e
	env.Setup.Limits = l
	return env.WithNewCollection()
}

func maxWatches(e *harness.Env) {
	const limit = 3
	for name, l := range map[string]watchserver.Limits{
		"in total":   {Watches: limit},
		"per client": {WatchesPerClient: limit},
	} {
		at := withLimits(e, l)
		var open []*harness.Watch
		for range limit {
			open = append(open, at.Dial(""))
		}
		a := at.WatchRaw("")
		a.WantRefused(http.StatusTooManyRequests, "TooManyRequests")
		if n, err := strconv.Atoi(a.Headers.Get("Retry-After")); err != nil || n < 1 {
			e.Errorf("%s: got Retry-After %q, want a positive number of seconds", name, a.Headers.Get("Retry-After"))
		}
		at.ListRaw("").WantStatus(http.StatusOK)
		at.WaitForWatches(limit)
		open[0].Close()
		at.WaitForWatches(limit - 1)
		at.WatchRaw("").WantAccepted()
	}
}
