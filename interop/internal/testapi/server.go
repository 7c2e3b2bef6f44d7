// Package testapi runs our server on sockets for clients of other projects. Tests can
// restart it, cut its connections and replace its store.
package testapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"k8s.io/client-go/rest"
)

// A Protocol is the protocol between a client and the server.
type Protocol string

// HTTP1 is HTTP/1.1 in clear text, HTTP1TLS is HTTP/1.1 over TLS, and HTTP2 is HTTP/2 over TLS.
const (
	HTTP1    Protocol = "HTTP/1.1"
	HTTP1TLS Protocol = "HTTP/1.1 over TLS"
	HTTP2    Protocol = "HTTP/2"
)

// Protocols is the list of protocols that a test repeats its requests over.
var Protocols = []Protocol{HTTP1, HTTP1TLS, HTTP2}

// A Server serves the default resources, and the resources that the test declares, from
// memory, in clear text and over TLS. It is safe for concurrent use.
type Server struct {
	DB  *memory.DB
	API *kubeapi.Handler

	t          testing.TB
	resources  []kubeapi.Resource
	others     http.ServeMux // see Handle
	clear, tls *endpoint
	ca         []byte // the self-signed certificate of tls, in PEM
}

// Start starts a Server that is stopped at the end of the test. resources are added to the
// default resources. They have the form of `listwatch serve --resource`, for example
// widgets.v1.demo.example.com=Widget.
func Start(t testing.TB, resources ...string) *Server {
	t.Helper()
	return StartWith(t, memory.Options{}, resources...)
}

// StartWith is like Start, with options for the store.
func StartWith(t testing.TB, o memory.Options, resources ...string) *Server {
	t.Helper()
	s := &Server{t: t, resources: kubeapi.DefaultResources()}
	for _, text := range resources {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			t.Fatal(err)
		}
		s.resources = append(s.resources, r)
	}
	s.open(memory.Open(o))
	certificate := borrowCertificate()
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	handler := s.relayed()
	s.clear = newEndpoint(ports.Address(t), handler, nil)
	s.tls = newEndpoint(ports.Address(t), handler, &tls.Config{Certificates: []tls.Certificate{certificate}})
	s.listen()
	t.Cleanup(s.stop)
	return s
}

// open makes s serve its resources from db.
func (s *Server) open(db *memory.DB) {
	s.t.Helper()
	s.DB, s.API = db, new(kubeapi.Handler)
	for _, r := range s.resources {
		c, err := db.Collection(r.CollectionSpec())
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.API.Add(r, c); err != nil {
			s.t.Fatal(err)
		}
	}
}

// borrowCertificate returns the certificate of package httptest, which is valid for 127.0.0.1.
func borrowCertificate() tls.Certificate {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.TLS.Certificates[0]
}

// Handle makes h serve the requests that match a pattern of [http.ServeMux], instead of API.
func (s *Server) Handle(pattern string, h http.Handler) { s.others.Handle(pattern, h) }

// URL returns the URL of the server in clear text. [Server.Restart] does not change it.
func (s *Server) URL() string { return "http://" + s.clear.addr }

// TLSURL returns the URL of the server over TLS. [Server.Restart] does not change it.
func (s *Server) TLSURL() string { return "https://" + s.tls.addr }

// CA returns a pool with the certificate of the server, for clients of TLSURL.
func (s *Server) CA() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca)
	return pool
}

// Config returns a configuration of client-go for s, with rate limits that are too high to
// slow down a test.
func (s *Server) Config(p Protocol) *rest.Config {
	c := &rest.Config{Host: s.URL(), QPS: 10000, Burst: 10000}
	if p == HTTP1 {
		return c
	}
	c.Host, c.CAData = s.TLSURL(), s.ca
	if p == HTTP1TLS {
		c.NextProtos = []string{"http/1.1"}
	}
	return c
}

// Collection returns the stored collection of a resource. The name is any of the resource's names,
// such as "pods", "po" or "deployments.apps".
func (s *Server) Collection(name string) *store.Collection {
	s.t.Helper()
	r, ok := kubeapi.FindResource(s.API.Resources(), name)
	if !ok {
		s.t.Fatalf("no resource is called %q", name)
	}
	return s.API.Collection(r)
}

// Cut resets every connection.
func (s *Server) Cut() { s.CutWhile(nil) }

// CutWhile resets every connection. If do is not nil, CutWhile calls it before accepting
// new connections.
func (s *Server) CutWhile(do func()) {
	s.clear.cut(func() { s.tls.cut(do) })
}

// Restart closes the listeners and all connections, calls down if it is not nil, and listens at the
// same addresses again. It keeps the store.
func (s *Server) Restart(down func()) {
	s.t.Helper()
	s.stop()
	if down != nil {
		down()
	}
	s.listen()
}

// IsLostConnection reports whether err means that a request of client-go failed before it got a
// response, although its context had not ended. That can happen to the first request after Restart,
// because the client may not have noticed yet that its HTTP/2 connection is closed.
func IsLostConnection(err error) bool {
	failed, ok := errors.AsType[*url.Error](err)
	return ok && !errors.Is(failed, context.Canceled) && !errors.Is(failed, context.DeadlineExceeded)
}

// Swap replaces the store with db, which must not have collections yet. This simulates a server
// that lost its store or restored a backup. Swap must only be called from the function passed to
// Restart.
func (s *Server) Swap(db *memory.DB) {
	s.t.Helper()
	s.open(db)
}

func (s *Server) listen() {
	s.t.Helper()
	for _, e := range []*endpoint{s.clear, s.tls} {
		if err := e.listen(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *Server) stop() {
	s.clear.stop()
	s.tls.stop()
}

// drainTimeout limits the time until all watches are closed. Only failing tests wait that long.
const drainTimeout = 5 * time.Minute

// Drain closes every watch, as a server does when it shuts down. No watch can be opened
// afterwards.
func (s *Server) Drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := s.API.Drain(ctx); err != nil {
		s.t.Errorf("drain: %v", err)
	}
}
