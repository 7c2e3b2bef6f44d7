package cases

import (
	"net/http"
	"strconv"

	"github.com/listwatch/listwatch/watchserver"
)

// limitedTo returns e over a collection of its own, at a server with these limits.
func (e *env) limitedTo(l watchserver.Limits) *env {
	e.Helper()
	e.use(Configurable)
	other := *e
	other.setup.Limits = l
	return other.again()
}

func maxWatches(e *env) {
	const most = 3
	for what, l := range map[string]watchserver.Limits{
		"in all":     {Watches: most},
		"per client": {WatchesPerClient: most},
	} {
		at := e.limitedTo(l)
		var open []*stream
		for range most {
			open = append(open, at.dial(""))
		}
		a := at.watch("")
		a.refused(http.StatusTooManyRequests, "TooManyRequests")
		if n, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || n < 1 {
			e.Errorf("%s: got Retry-After %q, want seconds", what, a.header.Get("Retry-After"))
		}
		at.list("").wantStatus(http.StatusOK)
		at.waitWatches(most)
		open[0].Close()
		at.waitWatches(most - 1)
		at.watch("").accepted()
	}
}
