package servers

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchcache"
	"github.com/listwatch/listwatch/watchserver"
)

// A listwatchServer serves a cache with all transports on one port, as docs/own-source.md shows.
type listwatchServer struct{ cache *watchcache.Cache }

func startListwatch(l net.Listener, state []event.Object) (Server, error) {
	s, server, err := newListwatch(state)
	if err == nil {
		go server.Serve(l)
	}
	return s, err
}

func startListwatchTLS(l net.Listener, state []event.Object) (Server, error) {
	s, server, err := newListwatch(state)
	if err == nil {
		server.TLSConfig.Certificates = []tls.Certificate{testCertificate()}
		go server.ServeTLS(l, "", "")
	}
	return s, err
}

func newListwatch(state []event.Object) (*listwatchServer, *http.Server, error) {
	cache := watchcache.New(listwatch.Description{}, watchcache.Options{})
	objects, version := make([]*listwatch.Object, len(state)), listwatch.Version(1)
	for i, o := range state {
		objects[i], version = listwatchObject(o), listwatch.Version(o.Version)
	}
	if err := cache.Replace(objects, version); err != nil {
		return nil, nil, err
	}
	watch := &watchserver.Server{Source: cache, Detach: true}
	// Send no pings, because the clients do not answer them. No other server requires answers.
	watch.Timing.Heartbeat = -1
	server := &http.Server{Handler: watch, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	h2.Configure(server, h2.Config{})
	return &listwatchServer{cache}, server, nil
}

// Publish implements Server.
func (s *listwatchServer) Publish(o event.Object) {
	if err := s.cache.Apply(watchcache.Change{Object: listwatchObject(o)}); err != nil {
		panic(err) // the generator's versions increase
	}
}

func listwatchObject(o event.Object) *listwatch.Object {
	object, err := listwatch.ParseObject(o.JSON)
	if err != nil {
		panic(err) // the generator makes valid objects
	}
	return object
}

// testCertificate returns the certificate of httptest, which clients do not verify.
func testCertificate() tls.Certificate {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.TLS.Certificates[0]
}
