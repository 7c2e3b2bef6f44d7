package disconnect

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/transport"
)

// DrainMutants break the cases of graceful shutdown.
var DrainMutants = []mutation.Mutant{
	{Name: "leaves-streams-open", Breaks: []string{"drain/ends-all"}, Defect: reference.Interceptors{Transport: closesUnless(transport.GoingAway)}},
	{Name: "waits-for-those-who-hang", Breaks: []string{"drain/deadline"}, Defect: reference.Interceptors{Transport: closesUnless(transport.Abort)}},
	{Name: "says-that-all-is-told", Breaks: []string{"drain/ws-1001"}, Defect: reference.Interceptors{
		Transport: mutation.OnClose(func(next transport.Sender, _ transport.End) error { return next.Close(transport.Finished) }),
	}},
	{Name: "loses-goaway", Breaks: []string{"drain/goaway"}, Defect: reference.Interceptors{Network: mutation.OnConns(func(c net.Conn) net.Conn {
		return &mutation.Sieve{Conn: c, Loses: http2.FrameGoAway, In: bufio.NewReader(c)}
	})}},
	{Name: "refuses-for-good", Breaks: []string{"drain/refuse-new"}, Defect: reference.Interceptors{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&hasty503{w}, r) })
	}}},
	{Name: "ends-all-together", Breaks: []string{"drain/rate-limited"}, Defect: reference.Interceptors{Transport: func(s transport.Server) transport.Server {
		var once sync.Once
		together := make(chan struct{})
		return mutation.OnClose(func(next transport.Sender, end transport.End) error {
			once.Do(func() { time.AfterFunc(time.Minute, func() { close(together) }) })
			<-together
			return next.Close(end)
		})(s)
	}}},
}

// closesUnless returns a transport that closes its streams in all ways but one.
func closesUnless(left transport.End) func(transport.Server) transport.Server {
	return mutation.OnClose(func(next transport.Sender, end transport.End) error {
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
