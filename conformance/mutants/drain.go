package mutants

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/transport"
)

// drainMutants break the cases of graceful shutdown.
var drainMutants = []Mutant{
	{"leaves-streams-open", []string{"drain/ends-all"}, cases.Interceptors{Transport: closesUnless(transport.GoingAway)}},
	{"waits-for-those-who-hang", []string{"drain/deadline"}, cases.Interceptors{Transport: closesUnless(transport.Abort)}},
	{"says-that-all-is-told", []string{"drain/ws-1001"}, cases.Interceptors{
		Transport: onClose(func(next transport.Sender, _ transport.End) error { return next.Close(transport.Finished) }),
	}},
	{"loses-goaway", []string{"drain/goaway"}, cases.Interceptors{Network: onConns(func(c net.Conn) net.Conn {
		return &sieve{Conn: c, loses: http2.FrameGoAway, in: bufio.NewReader(c)}
	})}},
	{"refuses-for-good", []string{"drain/refuse-new"}, cases.Interceptors{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&hasty503{w}, r) })
	}}},
	{"ends-all-together", []string{"drain/rate-limited"}, cases.Interceptors{Transport: func(s transport.Server) transport.Server {
		var once sync.Once
		together := make(chan struct{})
		return onClose(func(next transport.Sender, end transport.End) error {
			once.Do(func() { time.AfterFunc(time.Minute, func() { close(together) }) })
			<-together
			return next.Close(end)
		})(s)
	}}},
}

// closesUnless returns a transport that closes its streams in all ways but one.
func closesUnless(left transport.End) func(transport.Server) transport.Server {
	return onClose(func(next transport.Sender, end transport.End) error {
		if end == left {
			return nil
		}
		return next.Close(end)
	})
}

// hasty503 does not say when to come again.
type hasty503 struct{ http.ResponseWriter }

// Unwrap leads to what else the writer can do.
func (w *hasty503) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader forgets Retry-After.
func (w *hasty503) WriteHeader(code int) {
	w.Header().Del("Retry-After")
	w.ResponseWriter.WriteHeader(code)
}
