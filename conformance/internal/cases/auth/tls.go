package auth

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/certs"
	"github.com/listwatch/listwatch/transport"
)

// withTLSConfig returns a copy of e with a new client. change modifies the client's TLS
// configuration.
func withTLSConfig(e *harness.Env, change func(*tls.Config)) *harness.Env {
	s := *e.Instance
	s.Network.TLS = s.Network.TLS.Clone()
	change(s.Network.TLS)
	return e.WithRoute(&harness.Route{Instance: &s, Client: e.NewClient(&s, e.Variant)})
}

func tlsVersions(e *harness.Env) {
	e.Put("a")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		withTLSConfig(e, func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }).Dial("").Want("ADDED a")
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		client := withTLSConfig(e, func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = version, version
			c.ServerName, c.NextProtos = "127.0.0.1", e.ALPN()
		})
		c, err := client.Network.Dial(e.Context(), "tcp", e.URL.Host)
		if err != nil {
			e.Fatal(err)
		}
		if err := tls.Client(c, client.Network.TLS).HandshakeContext(e.Context()); err == nil {
			e.Errorf("the server accepts %s, want a failed handshake", tls.VersionName(version))
		}
		c.Close()
	}
}

func badCA(e *harness.Env) {
	wantServerCertificateRefused(e, "a certificate from an unknown authority", certs.Untrusted(), certs.ForServer)
	server := certs.Trusted().Issue(certs.ForServer)
	if key, ok := server.PrivateKey.(*ecdsa.PrivateKey); ok {
		wantServerCertificateRefused(e, "a certificate signed with another server's certificate",
			&certs.Authority{Key: key, Certificate: server.Leaf}, certs.ForServer)
	}
}

func wrongName(e *harness.Env) {
	wantServerCertificateRefused(e, "a certificate for another address", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)}
	})
	wantServerCertificateRefused(e, "a certificate with the address as its name", certs.Trusted(),
		func(c *x509.Certificate) {
			certs.ForServer(c)
			c.Subject.CommonName, c.IPAddresses, c.DNSNames = "127.0.0.1", nil, []string{"127.0.0.1", "*"}
		})
	wantServerCertificateRefused(e, "a client certificate", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

func expiredCertificate(e *harness.Env) {
	wantServerCertificateRefused(e, "an expired certificate", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.NotAfter = time.Now().Add(-time.Hour)
	})
	wantServerCertificateRefused(e, "a certificate that is not yet valid", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.NotBefore = time.Now().Add(time.Hour)
	})
}

// wantServerCertificateRefused checks that the client accepts a server with a valid certificate,
// but sends no request to a server with an invalid one. change makes the certificate invalid, and
// authority signs it.
func wantServerCertificateRefused(
	e *harness.Env, name string, authority *certs.Authority, change func(*x509.Certificate),
) {
	e.Helper()
	handlers := &harness.HandlerSequence{
		Env: e, Handlers: []http.HandlerFunc{e.SendThenEnd(harness.AddedEvent("a", "5"))},
	}
	e.WithRoute(serveTLS(e, handlers, certs.ServeTrusted)).Dial("").Want("ADDED a")
	route := serveTLS(e, handlers, func(c *tls.Config) { c.Certificates = []tls.Certificate{authority.Issue(change)} })
	receiver, dialErr := route.Client.Dial(e.Context(), &transport.Request{URL: route.WatchURL("watch=1")})
	if dialErr == nil {
		receiver.Close()
	}
	results := map[string]error{"dial": dialErr}
	if e.Target.OwnClock { // its errors have no such code, and a resuming client may retry
		if dialErr == nil {
			e.Errorf("%s: got a watch, want an error", name)
		}
		clear(results)
	} else {
		r := e.Remote(route)
		watcher, watchErr := r.Watch(e.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 1})
		if watchErr == nil {
			watcher.Close()
		}
		results["watch"] = watchErr
		_, results["list"] = r.List(e.Context(), listwatch.Query{})
	}
	for call, err := range results {
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(fmt.Sprint(err), "certificate") {
			e.Errorf("%s, %s: got %v, want an error with code Invalid that mentions the certificate", name, call, err)
		}
	}
	if n := len(handlers.RequestTimes()); n != 1 {
		e.Errorf("%s: the server received %d requests, want none", name, n-1)
	}
}

// serveTLS starts a TLS server for h. configure modifies the server's TLS configuration.
func serveTLS(e *harness.Env, h http.Handler, configure func(*tls.Config)) *harness.Route {
	e.Helper()
	e.Use(harness.InProcess)
	s := e.Setup
	s.TLS = true
	return e.RouteTo(harness.StartServer(e.T, s, h, func(c *tls.Config) {
		c.KeyLogWriter = e.KeyLog()
		configure(c)
	}, nil))
}

func mutualTLS(e *harness.Env) {
	e.Put("a")
	withCertificate := func(c tls.Certificate) *harness.Env {
		return withTLSConfig(e, func(config *tls.Config) { config.Certificates = []tls.Certificate{c} })
	}
	withCertificate(e.IssueCertificate(harness.Allowed)).Dial("").Want("ADDED a")
	if _, err := withCertificate(e.IssueCertificate(harness.Denied)).TryDial("", transport.Request{}); !errors.Is(err,
		listwatch.Forbidden) {
		e.Errorf("certificate of a user without permission: got %v, want an error with code Forbidden", err)
	}
	if _, err := e.TryDial("", transport.Request{}); err == nil {
		e.Error("without a certificate: got a watch, want an error")
	}
	if _, err := withCertificate(certs.Untrusted().Issue(certs.ForUser(harness.Allowed))).TryDial("",
		transport.Request{}); err == nil {
		e.Error("certificate from an unknown authority: got a watch, want an error")
	}
}

func rotateCertificate(e *harness.Env) {
	e.Use(harness.InProcess)
	serial := func() string {
		c, ok := e.ConnectDirectly(e.ALPN()...).(*tls.Conn)
		if !ok {
			e.Fatal("the connection does not use TLS")
		}
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	s, before := e.Dial(harness.From(e.Put("a"))), serial()
	for range 3 {
		e.Internals.RotateCertificate()
		if after := serial(); after == before {
			e.Errorf("the server still presents certificate %s after a rotation", before)
		}
		before = serial()
		e.Put("a")
		s.Want("MODIFIED a")
		client := withTLSConfig(e, func(*tls.Config) {})
		client.Dial("").Want("ADDED a")
	}
}

func tlsTruncation(e *harness.Env) {
	event := harness.EventJSON("ADDED", "a", "5") + "\n"
	wantTruncationError(e, "a stream", harness.ResponseHeader{ContentType: harness.JSONMediaType},
		harness.SendPieces(event))
	if e.Transport == "h1" {
		wantTruncationError(e, "a response that ends with the connection",
			harness.ResponseHeader{ContentType: harness.JSONMediaType, EndsWithConnection: true},
			harness.SendBytes(event))
	}
}

// closeWithoutNotify is a Step that closes the TCP connection for writing without a TLS
// close_notify.
func closeWithoutNotify(p *harness.ScriptedServer) {
	if c, ok := p.Conn.(*tls.Conn).NetConn().(*net.TCPConn); ok {
		_ = c.CloseWrite() // fails if the client has closed the connection
	}
	harness.StayOpen(p)
}

// wantTruncationError starts a scripted server that performs play and then closes the connection
// without close_notify. play must send one event, ADDED a. The client must return the event and
// then an error, not a clean end.
func wantTruncationError(e *harness.Env, name string, h harness.ResponseHeader, play harness.Step) {
	e.Helper()
	read := make(chan struct{})
	s := e.WithRoute(serveTLS(e, e.ScriptedWithHeader(h, play, harness.WaitFor(read), closeWithoutNotify),
		certs.ServeTrusted)).Dial("")
	s.Want("ADDED a")
	close(read)
	if w, err := s.Receive(); listwatch.CodeOf(err) != listwatch.Unavailable || errors.Is(err, io.EOF) {
		e.Errorf("%s: got %s, want an error of code Unavailable", name, harness.GotRaw(w, err))
	}
}
