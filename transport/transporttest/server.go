// Package transporttest tests transports: [Run] drives a server and a client against each other,
// over memory in a synctest bubble and over sockets, with and without TLS. A [TestServer] is only the
// server half, for other tests.
package transporttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
)

// A ServerConfig configures a [TestServer].
type ServerConfig struct {
	// Server accepts the streams. It may be nil if Handler does not call next.
	Server transport.Server
	// Options are passed to Server.Accept.
	Options transport.Options
	// Handler is middleware, or a handler that replaces Server. next accepts streams with Server.
	// It may be nil.
	Handler func(next http.Handler) http.Handler
	// Configure changes the http.Server before it starts. It may be nil.
	Configure func(*http.Server)
	// ServerTLS changes the TLS configuration of the server. It may be nil.
	ServerTLS func(*tls.Config)
	// TLS enables https. Sockets uses a port of 127.0.0.1 instead of a network in memory.
	TLS, Sockets bool
}

// A TestServer is a running http.Server that passes each stream it accepts to the test.
type TestServer struct {
	// URL is the URL of the streams. Clients must use Network.
	URL     *url.URL
	Network transport.Network
	// Streams has the accepted streams in order. The test sends on them and closes them.
	Streams <-chan *transport.Stream

	server  transport.Server
	options transport.Options
	streams chan *transport.Stream

	mu    sync.Mutex
	conns []*memnet.Conn // guarded by mu; the client ends
}

// A Test has the methods Helper, Cleanup and Fatal of testing.TB.
type Test interface {
	Helper()
	Cleanup(f func())
	Fatal(args ...any)
}

// StartServer starts a TestServer, which is closed at the end of the test.
func StartServer(t Test, c ServerConfig) *TestServer {
	t.Helper()
	s := &TestServer{server: c.Server, options: c.Options, streams: make(chan *transport.Stream, 1024)}
	s.Streams = s.streams
	var handler http.Handler = s
	if c.Handler != nil {
		handler = c.Handler(s)
	}
	srv := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	if c.Configure != nil {
		c.Configure(srv)
	}
	l := s.listen(t, c)
	serve := srv.Serve
	s.URL = &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/things", RawQuery: "watch=1"}
	if c.TLS {
		s.URL.Scheme = "https"
		srv.TLSConfig, s.Network.TLS = tlsConfigs()
		if c.ServerTLS != nil {
			c.ServerTLS(srv.TLSConfig)
		}
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	done := make(chan error)
	go func() { done <- serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return s
}

func (s *TestServer) listen(t Test, c ServerConfig) net.Listener {
	if c.Sockets {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := memnet.Listen()
	s.Network.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := l.DialConn(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = append(s.conns, conn)
		return conn, nil
	}
	return l
}

// Conns returns the client ends of all connections so far. With Sockets it returns nil.
func (s *TestServer) Conns() []*memnet.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*memnet.Conn(nil), s.conns...)
}

// ServeHTTP accepts a stream and passes it to the test. Unless the stream is detached, it waits
// for the end of the stream.
func (s *TestServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.server.Claims(r) {
		WriteError(w, &listwatch.Error{Code: listwatch.Unsupported, Status: http.StatusUpgradeRequired, Message: "the transport does not claim the request"})
		return
	}
	stream, err := s.server.Accept(w, r, s.options)
	if err != nil {
		WriteError(w, listwatch.AsError(err))
		return
	}
	s.streams <- stream
	if !stream.Detached {
		<-stream.Done
		if err := stream.Sender.Close(transport.Abort); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// WriteError responds with the Status of e.
func WriteError(w http.ResponseWriter, e *listwatch.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.HTTPStatus())
	_ = json.NewEncoder(w).Encode(listwatch.StatusOf(e))
}

// tlsConfigs returns the TLS configurations of a server and of clients that trust it.
func tlsConfigs() (server, client *tls.Config) {
	certificate, pool := authority()
	return &tls.Config{Certificates: []tls.Certificate{certificate}}, &tls.Config{RootCAs: pool}
}

// authority creates a certificate for 127.0.0.1, once. It is also valid at the fake time of
// synctest bubbles.
var authority = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "transporttest"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
})
