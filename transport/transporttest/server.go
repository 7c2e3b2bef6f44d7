// Package transporttest tests transports. [Run] tests a server and a client against each other,
// with and without TLS: over an in-memory network in a synctest bubble, and over real sockets.
// Other tests can use a [TestServer] with a client of their own.
package transporttest

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
)

// A ServerConfig configures a [TestServer].
type ServerConfig struct {
	// Server accepts the streams. It may be nil if Handler replaces it.
	Server transport.Server
	// Options are passed to Server.Accept.
	Options transport.Options
	// Handler wraps the given handler, which accepts streams with Server, in middleware, or returns
	// another handler instead. If Handler is nil, the given handler is used.
	Handler func(next http.Handler) http.Handler
	// Configure changes the http.Server before it starts. It may be nil.
	Configure func(*http.Server)
	// ServerTLS changes the TLS configuration of the server. It may be nil.
	ServerTLS func(*tls.Config)
	// TLS enables https. Sockets makes the server listen on a port of 127.0.0.1, instead of in
	// memory.
	TLS, Sockets bool
}

// A TestServer is a running http.Server that passes each stream it accepts to the test.
type TestServer struct {
	// URL is the URL of the streams. Clients must reach it over Network.
	URL     *url.URL
	Network transport.Network
	// Streams delivers the accepted streams in order. The test sends events on these streams and
	// closes them.
	Streams <-chan *Stream

	server  transport.Server
	options transport.Options
	streams chan *Stream
	http    *testhttp.Server
}

// A Stream is a stream that a [TestServer] has accepted. The server uses its OnDone and Serve.
type Stream struct {
	*transport.Stream
	done chan struct{}
}

// Done returns a channel that is closed when the client has disconnected or Sender has been closed.
func (s *Stream) Done() <-chan struct{} { return s.done }

// A Test has the methods Helper, Cleanup and Fatal of testing.TB.
type Test interface {
	Helper()
	Cleanup(f func())
	Fatal(args ...any)
}

// StartServer starts a TestServer, which is closed at the end of the test.
func StartServer(t Test, c ServerConfig) *TestServer {
	t.Helper()
	s := &TestServer{server: c.Server, options: c.Options, streams: make(chan *Stream, 1024)}
	s.Streams = s.streams
	var handler http.Handler = s
	if c.Handler != nil {
		handler = c.Handler(s)
	}
	s.http = testhttp.Start(t, handler, testhttp.Options{
		Configure: c.Configure, TLS: c.TLS, ConfigureTLS: c.ServerTLS, Sockets: c.Sockets,
	})
	u, err := url.Parse(s.http.URL("/things?watch=1"))
	if err != nil {
		t.Fatal(err)
	}
	s.URL, s.Network = u, transport.Network{Dial: s.http.Dial, TLS: s.http.ClientTLS}
	return s
}

// Conns returns the client ends of all connections made so far. With Sockets it returns
// nil.
func (s *TestServer) Conns() []*memnet.Conn { return s.http.Conns() }

// ServeHTTP accepts a stream and passes it to the test. Unless the stream is detached,
// ServeHTTP waits until the stream ends.
func (s *TestServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.server.Claims(r) {
		WriteError(w, &listwatch.Error{
			Code: listwatch.Unsupported, Status: http.StatusUpgradeRequired,
			Message: "the transport does not claim the request",
		})
		return
	}
	stream, err := s.server.Accept(w, r, s.options)
	if err != nil {
		WriteError(w, listwatch.AsError(err))
		return
	}
	accepted := &Stream{stream, make(chan struct{})}
	stream.OnDone(func() { close(accepted.done) })
	if stream.Serve != nil {
		go stream.Serve()
	}
	s.streams <- accepted
	if !stream.Detached {
		<-accepted.done
		if err := stream.Sender.Close(transport.Abort); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// WriteError responds with the Status of e.
func WriteError(w http.ResponseWriter, e *listwatch.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.HTTPStatus())
	_ = json.NewEncoder(w).Encode(kubestatus.Of(e))
}
