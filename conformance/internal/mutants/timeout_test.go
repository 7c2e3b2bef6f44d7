package mutants

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// timeoutMutants are servers and clients with one defect each, which the cases about timeouts and
// heartbeats must detect.
var timeoutMutants = []mutant{
	{
		Name:   "ignores-timeoutSeconds",
		Breaks: []string{"timeout/seconds", "timeout/activity-independent", "timeout/bad-values"},
		Defect: defect{
			Handler: withTimeout(func(string) string { return "" }),
		},
	},
	{
		Name: "aborts-completed-watches", Breaks: []string{"timeout/clean-end-form", "drain/ends-all"},
		Defect: defect{
			Transport: onClose(func(next transport.Sender, _ transport.End) error {
				return next.Close(transport.Abort)
			}),
		},
	},
	{
		Name: "has-a-fixed-default-timeout", Breaks: []string{"timeout/default-jitter"},
		Defect: defect{Handler: withTimeout(func(requested string) string {
			if requested == "" {
				return "900"
			}
			return requested
		})},
	},
	{
		Name: "never-pings", Breaks: []string{"timeout/heartbeat", "timeout/ws-pong-missing", "drop/half-open"},
		Defect: defect{
			Transport: onAccept(func(o *transport.Options) { o.PingInterval = -1 }, nil),
		},
	},
	{
		Name: "client-has-no-idle-timeout", Breaks: []string{"timeout/client-idle", "drop/client-half-open"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			r.IdleTimeout = -1
			return r
		}},
	},
}

// withTimeout returns a middleware that replaces the timeoutSeconds of each request with the result
// of change.
func withTimeout(change func(requested string) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			q.Set("timeoutSeconds", change(q.Get("timeoutSeconds")))
			r.URL.RawQuery = q.Encode()
			next.ServeHTTP(w, r)
		})
	}
}
