package mutants

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/transport"
)

// timeoutMutants break the cases of time-outs and heartbeats.
var timeoutMutants = []Mutant{
	{"forgets-timeoutSeconds", []string{"timeout/seconds", "timeout/activity-independent", "timeout/bad-values"}, cases.Interceptors{
		Handler: withTimeout(func(string) string { return "" }),
	}},
	{"cuts-off-what-is-complete", []string{"timeout/clean-end-form", "drain/ends-all"}, cases.Interceptors{
		Transport: onClose(func(next transport.Sender, _ transport.End) error { return next.Close(transport.Abort) }),
	}},
	{"has-one-time-for-all", []string{"timeout/default-jitter"}, cases.Interceptors{Handler: withTimeout(func(asked string) string {
		if asked == "" {
			return "900"
		}
		return asked
	})}},
	{"never-pings", []string{"timeout/heartbeat", "timeout/ws-pong-missing", "drop/half-open"}, cases.Interceptors{
		Transport: onAccept(func(o *transport.Options) { o.PingInterval = -1 }, nil),
	}},
	{"client-bears-any-silence", []string{"timeout/client-idle", "drop/client-half-open"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		r.IdleTimeout = -1
		return r
	}}},
}

// withTimeout returns a handler that is asked for another timeoutSeconds.
func withTimeout(change func(asked string) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			q.Set("timeoutSeconds", change(q.Get("timeoutSeconds")))
			r.URL.RawQuery = q.Encode()
			next.ServeHTTP(w, r)
		})
	}
}
