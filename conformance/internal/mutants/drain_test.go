package mutants

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/transport"
)

// drainMutants are servers with one defect each, which the cases about graceful shutdown must
// detect.
var drainMutants = []mutant{
	{
		Name: "drain-leaves-streams-open", Breaks: []string{"drain/ends-all"},
		Defect: defect{Transport: ignoreClose(transport.GoingAway)},
	},
	{
		Name: "never-aborts-stuck-streams", Breaks: []string{"drain/deadline"},
		Defect: defect{Transport: ignoreClose(transport.Abort)},
	},
	{
		Name: "drains-with-the-normal-close-code", Breaks: []string{"drain/ws-1001"},
		Defect: defect{
			Transport: onClose(func(next transport.Sender, _ transport.End) error {
				return next.Close(transport.Finished)
			}),
		},
	},
	{
		Name: "sends-no-goaway", Breaks: []string{"drain/goaway"},
		Defect: defect{Network: onConns(func(c net.Conn) net.Conn {
			return &frameFilter{Conn: c, Drop: http2.FrameGoAway, In: bufio.NewReader(c)}
		})},
	},
	{
		Name: "drain-omits-retry-after", Breaks: []string{"drain/refuse-new"},
		Defect: defect{Handler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(&withoutRetryAfter{w},
					r)
			})
		}},
	},
	{
		Name: "drain-ends-all-watches-at-once", Breaks: []string{"drain/rate-limited"},
		Defect: defect{Transport: func(s transport.Server) transport.Server {
			var once sync.Once
			together := make(chan struct{})
			return onClose(func(next transport.Sender, end transport.End) error {
				once.Do(func() { time.AfterFunc(time.Minute, func() { close(together) }) })
				<-together
				return next.Close(end)
			})(s)
		}},
	},
}

// ignoreClose returns a function that wraps a transport. The wrapper's streams do nothing on
// Close(ignored).
func ignoreClose(ignored transport.End) func(transport.Server) transport.Server {
	return onClose(func(next transport.Sender, end transport.End) error {
		if end == ignored {
			return nil
		}
		return next.Close(end)
	})
}

// withoutRetryAfter removes Retry-After from the response.
type withoutRetryAfter struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w *withoutRetryAfter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *withoutRetryAfter) WriteHeader(code int) {
	w.Header().Del("Retry-After")
	w.ResponseWriter.WriteHeader(code)
}
