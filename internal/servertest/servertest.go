package servertest

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// TransportNames are the names that [Server.Client] accepts.
var TransportNames = []string{"chunked", "h2", "websocket"}

// drainTimeout is the time after which the test fails if watches have not ended. It is
// long, because a busy machine must not make a test fail.
const drainTimeout = 5 * time.Minute

// Options configure a [Server]. The zero value serves the source in memory, in clear text, with
// the defaults of watchserver.Server.
type Options struct {
	// Configure, if not nil, changes the watchserver before it starts.
	Configure func(*watchserver.Server)
	// Wrap, if not nil, returns the handler to serve. It receives the watchserver as its
	// argument.
	Wrap func(http.Handler) http.Handler
	// ConfigureHTTP, if not nil, changes the http.Server before it starts. Afterwards
	// [h2.Configure] sets the fields that are still zero.
	ConfigureHTTP func(*http.Server)
	// HTTP2 configures HTTP/2.
	HTTP2 h2.Config
	// TLS enables https.
	TLS bool
	// ConfigureTLS, if not nil, changes the server's TLS configuration before it starts.
	ConfigureTLS func(*tls.Config)
	// Sockets makes the server listen on a port of 127.0.0.1 instead of in memory.
	Sockets bool
}

// A Server is a watchserver that runs for a test.
type Server struct {
	*testhttp.Server
	// WatchServer serves the source.
	WatchServer *watchserver.Server
	// Network connects clients to the server.
	Network transport.Network

	clients map[string]transport.Client
}

// Start serves source until the test has finished. Watches that are still open at that time
// are drained. The test fails if that takes longer than five minutes.
func Start(t testing.TB, source listwatch.Source, o Options) *Server {
	t.Helper()
	s := &Server{WatchServer: &watchserver.Server{Source: source}}
	if o.Configure != nil {
		o.Configure(s.WatchServer)
	}
	var handler http.Handler = s.WatchServer
	if o.Wrap != nil {
		handler = o.Wrap(handler)
	}
	s.Server = testhttp.Start(t, handler, testhttp.Options{
		TLS: o.TLS, ConfigureTLS: o.ConfigureTLS, Sockets: o.Sockets,
		Configure: func(srv *http.Server) {
			if o.ConfigureHTTP != nil {
				o.ConfigureHTTP(srv)
			}
			h2.Configure(srv, o.HTTP2)
		},
	})
	s.Network = transport.Network{Dial: s.Dial, TLS: s.ClientTLS}
	s.clients = map[string]transport.Client{
		"chunked":   &chunked.Client{Network: s.Network},
		"h2":        &h2.Client{Network: s.Network},
		"websocket": &websocket.Client{Network: s.Network},
	}
	t.Cleanup(func() { s.shutDown(t) })
	return s
}

func (s *Server) shutDown(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := s.WatchServer.Drain(ctx); err != nil {
		t.Errorf("drain the watchserver after the test: %v", err)
	}
	s.Close()
	for _, c := range s.clients {
		if c, ok := c.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// WatchURL returns the URL of a watch of path. query holds further parameters, such as
// "resourceVersion=5". It may be empty.
func (s *Server) WatchURL(path, query string) *url.URL {
	u, err := url.Parse(s.URL(path))
	if err != nil {
		panic("servertest: " + err.Error())
	}
	u.RawQuery = strings.TrimSuffix("watch=1&"+query, "&")
	return u
}

// Client returns the client of a transport, one of [TransportNames]. All calls with the same
// name return the same client.
func (s *Server) Client(name string) transport.Client {
	c, ok := s.clients[name]
	if !ok {
		panic("servertest: no transport is named " + name)
	}
	return c
}

// Clients returns the clients of the named transports, or of all transports if no name is
// given.
func (s *Server) Clients(names ...string) []transport.Client {
	if len(names) == 0 {
		names = TransportNames
	}
	clients := make([]transport.Client, len(names))
	for i, name := range names {
		clients[i] = s.Client(name)
	}
	return clients
}
