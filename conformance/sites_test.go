package conformance_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// A site is one server that listens.
type site struct {
	url url.URL
	tls *tls.Config // of clients; nil: plain
}

// A siteKey names a site of the matrix.
type siteKey struct {
	server string
	tls    bool
}

// openSites serves source in every way there is, each on a port of its own.
func openSites(t *testing.T, source listwatch.Source) map[siteKey]*site {
	sites := make(map[siteKey]*site)
	for _, end := range serverEnds {
		for _, secure := range []bool{false, true} {
			sites[siteKey{end.name, secure}] = openSite(t, source, end, secure, nil)
		}
	}
	return sites
}

// openSite serves source until the test is over. protocols are those of the port; nil: HTTP/1.1 and HTTP/2.
func openSite(t *testing.T, source listwatch.Source, end serverEnd, secure bool, protocols *http.Protocols) *site {
	t.Helper()
	ws := &watchserver.Server{
		Source: source, Transports: []transport.Server{end.Server},
		Timing: watchserver.Timing{Heartbeat: patience}, Limits: watchserver.Limits{WriteTimeout: patience},
	}
	srv := &http.Server{Handler: ws, ErrorLog: log.New(io.Discard, "", 0), Protocols: protocols}
	h2.Configure(srv, transport.Options{WriteTimeout: patience, PingInterval: patience})
	s := &site{url: url.URL{Scheme: "http", Path: "/things"}}
	serve := srv.Serve
	if secure {
		s.url.Scheme = "https"
		srv.TLSConfig, s.tls = certificate(t)
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url.Host = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := ws.Drain(ctx); err != nil {
			t.Errorf("drain %s: %v", end.name, err)
		}
		srv.Close()
		<-done
	})
	return s
}

// patience is how long a test waits for what must come, and a server for its clients: it ends a hang, it judges no speed.
const patience = 8 * time.Minute

// certificate makes one for 127.0.0.1, and returns the configurations of a server that has it and of clients that trust it.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}}, &tls.Config{RootCAs: pool}
}
