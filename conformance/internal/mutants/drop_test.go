package mutants

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
)

// dropMutants are servers and clients with one defect each, which the cases about disconnects
// must detect.
var dropMutants = []mutant{
	{
		Name:   "ignores-that-clients-disconnect",
		Breaks: []string{"drop/client-close", "drop/h2-rst-stream", "drop/no-leak"},
		Defect: defect{
			Transport: onAccept(nil, func(s *transport.Stream) { s.OnDone = func(func()) {} }),
			Handler: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
				})
			},
		},
	},
	{
		Name: "does-not-answer-close-frames", Breaks: []string{"drop/ws-close-echo"},
		Defect: defect{Network: onConns(func(c net.Conn) net.Conn {
			return &writeFilter{Conn: c, Keep: func(p []byte) bool { return p[0] != bitFinal|opClose }}
		})},
	},
	{
		Name:   "client-resumes-at-a-later-version",
		Breaks: []string{"drop/rst", "drop/client-half-open", "drop/ws-1006", "drop/h2-ping-timeout", "drain/no-loss"},
		Defect: defect{
			TransportClient: func(c transport.Client) transport.Client {
				var dials atomic.Int64
				return onDials(func(
					c transport.Client, ctx context.Context, r *transport.Request,
				) (transport.Receiver, error) {
					if dials.Add(1) > 1 {
						r = skipVersions(r)
					}
					return c.Dial(ctx, r)
				})(c)
			},
		},
	},
	{
		Name: "client-takes-a-reset-for-a-clean-end", Breaks: []string{"drop/ws-1006", "drop/no-leak"},
		Defect: defect{
			TransportClient: onDials(func(
				c transport.Client, ctx context.Context, r *transport.Request,
			) (transport.Receiver, error) {
				receiver, err := c.Dial(ctx, r)
				return &cleanEndReceiver{receiver}, err
			}),
		},
	},
	{
		Name: "client-keeps-one-stream-only", Breaks: []string{"drop/h2-goaway"},
		Defect: defect{TransportClient: func(c transport.Client) transport.Client {
			var last transport.Receiver
			return onDials(func(
				c transport.Client, ctx context.Context, r *transport.Request,
			) (transport.Receiver, error) {
				if last != nil {
					last.Close()
				}
				receiver, err := c.Dial(ctx, r)
				last = receiver
				return receiver, err
			})(c)
		}},
	},
	{
		Name: "client-sends-no-ping", Breaks: []string{"drop/h2-ping-timeout"},
		Defect: defect{TransportClient: func(c transport.Client) transport.Client {
			if c, ok := c.(*h2.Client); ok {
				return &h2.Client{Network: c.Network, PingInterval: -1}
			}
			return c
		}},
	},
	{
		Name: "client-reconnects-without-delay", Breaks: []string{"drop/storm"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			r.Backoff = listwatch.Backoff{Min: -1, Max: -1}
			return r
		}},
	},
}

// skipVersions returns a copy of r with its resourceVersion increased by two. An increase by one
// might skip no event, because a client may resume from the version before its last event.
func skipVersions(r *transport.Request) *transport.Request {
	changed, u := *r, *r.URL
	q := u.Query()
	if v, err := listwatch.ParseVersion(q.Get("resourceVersion")); err == nil && v > 0 {
		q.Set("resourceVersion", (v + 2).String())
	}
	u.RawQuery = q.Encode()
	changed.URL = &u
	return &changed
}

// cleanEndReceiver is a receiver that reports every error as a clean end.
type cleanEndReceiver struct{ transport.Receiver }

func (c *cleanEndReceiver) Receive() (framing.WatchEvent, error) {
	e, err := c.Receiver.Receive()
	if err != nil {
		err = io.EOF
	}
	return e, err
}
