package mutants

import (
	"context"
	"io"
	"net"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
)

// dropMutants break the cases of disconnects.
var dropMutants = []Mutant{
	{"keeps-those-who-left", []string{"drop/client-close", "drop/h2-rst-stream", "drop/no-leak"}, cases.Interceptors{
		Transport: onAccept(nil, func(s *transport.Stream) { s.Done = nil }),
	}},
	{"does-not-answer-a-close", []string{"drop/ws-close-echo"}, cases.Interceptors{Network: onConns(func(c net.Conn) net.Conn {
		return &muffled{c, func(p []byte) bool { return p[0] != bitFinal|opClose }}
	})}},
	{"client-resumes-too-late", []string{"drop/rst", "drop/client-half-open", "drop/ws-1006", "drop/h2-ping-timeout", "drain/no-loss"}, cases.Interceptors{
		TransportClient: func(c transport.Client) transport.Client {
			var dials atomic.Int64
			return onDials(func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
				if dials.Add(1) > 1 {
					r = later(r)
				}
				return c.Dial(ctx, r)
			})(c)
		},
	}},
	{"client-takes-a-cut-for-an-end", []string{"drop/ws-1006", "drop/no-leak"}, cases.Interceptors{
		TransportClient: onDials(func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
			receiver, err := c.Dial(ctx, r)
			return &blithe{receiver}, err
		}),
	}},
	{"client-has-one-stream", []string{"drop/h2-goaway"}, cases.Interceptors{TransportClient: func(c transport.Client) transport.Client {
		var last transport.Receiver
		return onDials(func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
			if last != nil {
				last.Close()
			}
			receiver, err := c.Dial(ctx, r)
			last = receiver
			return receiver, err
		})(c)
	}}},
	{"client-sends-no-ping", []string{"drop/h2-ping-timeout"}, cases.Interceptors{TransportClient: func(c transport.Client) transport.Client {
		if c, ok := c.(*h2.Client); ok {
			return &h2.Client{Network: c.Network, PingInterval: -1}
		}
		return c
	}}},
	{"client-comes-back-at-once", []string{"drop/storm"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		r.Backoff = listwatch.Backoff{Min: -1, Max: -1}
		return r
	}}},
}

// later returns r for a later version than it asks for: two on, for a client may ask from before the last that it has seen.
func later(r *transport.Request) *transport.Request {
	changed, u := *r, *r.URL
	q := u.Query()
	if v, err := listwatch.ParseVersion(q.Get("resourceVersion")); err == nil && v > 0 {
		q.Set("resourceVersion", (v + 2).String())
	}
	u.RawQuery = q.Encode()
	changed.URL = &u
	return &changed
}

// blithe is a receiver for which every end is a clean one.
type blithe struct{ transport.Receiver }

// Receive turns errors into io.EOF.
func (b *blithe) Receive() (framing.WatchEvent, error) {
	e, err := b.Receiver.Receive()
	if err != nil {
		err = io.EOF
	}
	return e, err
}
