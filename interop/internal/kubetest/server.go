// Package kubetest runs the server on real sockets for clients that are not ours, and lets tests do to it what networks and
// operators do.
package kubetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"k8s.io/client-go/rest"
)

// A Protocol is what a client and the server speak.
type Protocol string

// HTTP1 is HTTP/1.1 in clear text, HTTP1TLS the same over TLS, HTTP2 is HTTP/2 over TLS.
const (
	HTTP1    Protocol = "HTTP/1.1"
	HTTP1TLS Protocol = "HTTP/1.1 over TLS"
	HTTP2    Protocol = "HTTP/2"
)

// Protocols are all there are.
var Protocols = []Protocol{HTTP1, HTTP1TLS, HTTP2}

// A Server serves the default resources, and those that the test declares, from memory, in clear text and over TLS. It is safe for
// concurrent use.
type Server struct {
	DB  *memory.DB
	API *kubeapi.Handler

	t          testing.TB
	resources  []kubeapi.Resource
	clear, tls *endpoint
	ca         []byte // the certificate of tls, which signs itself, in PEM
}

// Start starts a Server that ends with the test. Resources are those beside the default ones, as `listwatch serve --resource` wants
// them: widgets.v1.demo.example.com=Widget.
func Start(t testing.TB, resources ...string) *Server {
	t.Helper()
	return StartWith(t, memory.Options{}, resources...)
}

// StartWith is Start with a store of other options.
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
	s.clear = newEndpoint(s.API, nil)
	s.tls = newEndpoint(s.API, &tls.Config{Certificates: []tls.Certificate{certificate}})
	s.listen()
	t.Cleanup(s.stop)
	return s
}

// open makes s serve what it has declared from db.
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

// borrowCertificate returns that of package httptest, for 127.0.0.1.
func borrowCertificate() tls.Certificate {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.TLS.Certificates[0]
}

// URL is where the server is, in clear text. It outlives [Server.Restart].
func (s *Server) URL() string { return "http://" + s.clear.addr }

// TLSURL is where the server is over TLS. It outlives [Server.Restart].
func (s *Server) TLSURL() string { return "https://" + s.tls.addr }

// CA returns a pool with the certificate of TLSURL, for clients to trust.
func (s *Server) CA() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca)
	return pool
}

// Config returns how a client of client-go reaches s, with a limit of requests that a test does not feel.
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

// Collection returns the store's end of a resource, by any of its words: "pods", "deployments.apps".
func (s *Server) Collection(name string) *store.Collection {
	s.t.Helper()
	r, ok := kubeapi.FindResource(s.API.Resources(), name)
	if !ok {
		s.t.Fatalf("nothing is served as %q", name)
	}
	return s.API.Collection(r)
}

// Cut resets every connection.
func (s *Server) Cut() { s.CutWhile(nil) }

// CutWhile is Cut, and new connections are let in when do, if it is not nil, has returned.
func (s *Server) CutWhile(do func()) {
	s.clear.cut(func() { s.tls.cut(do) })
}

// Restart ends all connections and stops listening, calls down, if it is not nil, and listens at the same addresses again. The store
// lives on.
func (s *Server) Restart(down func()) {
	s.t.Helper()
	s.stop()
	if down != nil {
		down()
	}
	s.listen()
}

// Swap serves from db, which has no collections yet, as a server does that has lost its store or got an older one back. It is for
// Restart's down: nobody else may use s meanwhile.
func (s *Server) Swap(db *memory.DB) {
	s.t.Helper()
	s.open(db)
	s.clear.handler, s.tls.handler = s.API, s.API
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

// Drain ends every watch as a server that shuts down does. Nothing can be watched after it.
func (s *Server) Drain() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.API.Drain(ctx); err != nil {
		s.t.Errorf("drain: %v", err)
	}
}
