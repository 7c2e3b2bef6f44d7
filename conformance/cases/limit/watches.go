package limit

import (
	"net/http"
	"strconv"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// limitedTo returns e over a collection of its own, at a server with these limits.
func limitedTo(e *harness.Env, l watchserver.Limits) *harness.Env {
	e.Helper()
	e.Use(harness.Configurable)
	other := *e
	other.Setup.Limits = l
	return other.WithNewCollection()
}

func maxWatches(e *harness.Env) {
	const most = 3
	for what, l := range map[string]watchserver.Limits{
		"in all":     {Watches: most},
		"per client": {WatchesPerClient: most},
	} {
		at := limitedTo(e, l)
		var open []*harness.Watch
		for range most {
			open = append(open, at.Dial(""))
		}
		a := at.WatchRaw("")
		a.WantRefused(http.StatusTooManyRequests, "TooManyRequests")
		if n, err := strconv.Atoi(a.Headers.Get("Retry-After")); err != nil || n < 1 {
			e.Errorf("%s: got Retry-After %q, want seconds", what, a.Headers.Get("Retry-After"))
		}
		at.ListRaw("").WantStatus(http.StatusOK)
		at.WaitForWatches(most)
		open[0].Close()
		at.WaitForWatches(most - 1)
		at.WatchRaw("").WantAccepted()
	}
}
