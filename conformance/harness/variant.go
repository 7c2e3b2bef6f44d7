package harness

import (
	"context"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch/internal/h2websocket"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
	"github.com/listwatch/listwatch/watchserver"
)

// A Variant combines a transport with an implementation of its client. If the server is this
// module's, the variant also selects the implementation of the server side.
type Variant struct {
	Name       string
	Transport  string // h1, h2 or ws
	Server     transport.Server
	newClient  func(transport.Network) transport.Client
	serverOnly bool // runs against this module's server only
	// HTTP2 configures HTTP/2 if the server is this module's. If HTTP2.ExtendedConnect is set,
	// clients open WebSockets over HTTP/2.
	HTTP2 h2.Config
}

// AllVariants lists all variants in which cases run.
var AllVariants = []Variant{
	{Name: "h1", Transport: "h1", Server: chunked.Server{}, newClient: newH1},
	{
		Name: "h1-standard", Transport: "h1", Server: chunked.Server{DisableHijack: true}, newClient: newH1,
		serverOnly: true,
	},
	{Name: "h2", Transport: "h2", Server: h2.Server{}, newClient: newH2},
	{
		Name: "h2-nethttp", Transport: "h2", Server: h2.Server{}, newClient: newH2,
		serverOnly: true, HTTP2: h2.Config{NetHTTP: true},
	},
	{Name: "ws-native", Transport: "ws", Server: &websocket.Server{}, newClient: newWS},
	{
		Name: "ws-h2", Transport: "ws", Server: &websocket.Server{}, newClient: newWSOverH2,
		serverOnly: true, HTTP2: h2.Config{ExtendedConnect: true},
	},
	{Name: "ws-gorilla", Transport: "ws", Server: &gorilla.Server{}, newClient: newGorilla},
	{Name: "ws-nhooyr", Transport: "ws", Server: &nhooyr.Server{}, newClient: newNhooyr},
}

// OpensOverHTTP2 reports whether clients open WebSockets over HTTP/2 (RFC 8441).
func (v Variant) OpensOverHTTP2() bool { return v.HTTP2.ExtendedConnect }

// Accept returns a handler that accepts a watch and calls f with its stream. done is closed when
// the client has disconnected or f has closed the stream. The watch ends when f returns.
func (v Variant) Accept(
	o transport.Options, f func(s *transport.Stream, done <-chan struct{}),
) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		stream, err := v.Server.Accept(rw, r, o)
		if err != nil {
			watchserver.WriteError(rw, r, err)
			return
		}
		done := make(chan struct{})
		stream.OnDone(func() { close(done) })
		if stream.Serve != nil {
			go stream.Serve()
		}
		f(stream, done)
	}
}

func newH1(n transport.Network) transport.Client { return &chunked.Client{Network: n} }

func newH2(n transport.Network) transport.Client { return &h2.Client{Network: n} }

func newWS(n transport.Network) transport.Client { return &websocket.Client{Network: n} }

func newWSOverH2(n transport.Network) transport.Client { return h2websocket.NewClient(n, newWS) }

func newGorilla(n transport.Network) transport.Client { return &gorilla.Client{Network: n} }

func newNhooyr(n transport.Network) transport.Client { return &nhooyr.Client{Network: n} }

// Variants returns the names of all variants.
func Variants() []string {
	var names []string
	for _, w := range AllVariants {
		names = append(names, w.Name)
	}
	return names
}

// TransportOf returns the transport of a variant (h1, h2 or ws), or "" if no variant has
// that name.
func TransportOf(name string) string {
	for _, w := range AllVariants {
		if w.Name == name {
			return w.Transport
		}
	}
	return ""
}

// ProbeVariants opens a watch of s in each variant. It returns the names of the variants that work,
// and the errors of the variants that do not.
func ProbeVariants(ctx context.Context, s *Instance) (served []string, refused map[string]error) {
	refused = map[string]error{}
	// The probes run at the same time, so that a variant that never responds delays no other.
	errs := make([]error, len(AllVariants))
	var all sync.WaitGroup
	for i, w := range AllVariants {
		if !w.serverOnly {
			all.Go(func() { errs[i] = w.probe(ctx, s) })
		}
	}
	all.Wait()
	for i, w := range AllVariants {
		switch {
		case w.serverOnly:
		case errs[i] != nil:
			refused[w.Name] = errs[i]
		default:
			served = append(served, w.Name)
		}
	}
	return served, refused
}

func (v Variant) probe(ctx context.Context, s *Instance) error {
	c := v.newClient(s.Network)
	if idle, ok := c.(interface{ CloseIdleConnections() }); ok {
		defer idle.CloseIdleConnections()
	}
	r, err := c.Dial(ctx, &transport.Request{URL: s.WatchURL("watch=1"), Header: s.Header})
	if err != nil {
		return err
	}
	return r.Close()
}
