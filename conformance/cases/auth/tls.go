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
	"github.com/listwatch/listwatch/conformance/certs"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// withTLS returns e with a client of its own, whose TLS is what change makes of it.
func withTLS(e *harness.Env, change func(*tls.Config)) *harness.Env {
	s := *e.Instance
	s.Network.TLS = s.Network.TLS.Clone()
	change(s.Network.TLS)
	return e.Via(&harness.Route{Instance: &s, Client: e.NewClient(&s, e.Variant)})
}

func tlsVersions(e *harness.Env) {
	e.Put("a")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		withTLS(e, func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }).Dial("").Want("ADDED a")
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		old := withTLS(e, func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = version, version
			c.ServerName, c.NextProtos = "127.0.0.1", e.ALPN()
		})
		c, err := old.Network.Dial(e.Context(), "tcp", e.URL.Host)
		if err != nil {
			e.Fatal(err)
		}
		if err := tls.Client(c, old.Network.TLS).HandshakeContext(e.Context()); err == nil {
			e.Errorf("the server speaks %s", tls.VersionName(version))
		}
		c.Close()
	}
}

func badCA(e *harness.Env) {
	refuses(e, "a certificate that nobody trusts", certs.Untrusted(), certs.ForServer)
	server := certs.Trusted().Issue(certs.ForServer)
	if key, ok := server.PrivateKey.(*ecdsa.PrivateKey); ok {
		refuses(e, "a certificate that another server has signed", &certs.Authority{Key: key, Certificate: server.Leaf}, certs.ForServer)
	}
}

func wrongName(e *harness.Env) {
	refuses(e, "that of another address", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)}
	})
	refuses(e, "that of a host whose name is the address", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.Subject.CommonName, c.IPAddresses, c.DNSNames = "127.0.0.1", nil, []string{"127.0.0.1", "*"}
	})
	refuses(e, "that of a client", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

func expiredCertificate(e *harness.Env) {
	refuses(e, "one that is valid no more", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.NotAfter = time.Now().Add(-time.Hour)
	})
	refuses(e, "one that is not valid yet", certs.Trusted(), func(c *x509.Certificate) {
		certs.ForServer(c)
		c.NotBefore = time.Now().Add(time.Hour)
	})
}

// refuses has a server show a certificate that by signed, to the client, which must not ask it for anything; and before that a sound one.
func refuses(e *harness.Env, what string, by *certs.Authority, change func(*x509.Certificate)) {
	e.Helper()
	script := &harness.HandlerSequence{Env: e, Handlers: []http.HandlerFunc{e.SendThenEnd(harness.AddedEvent("a", "5"))}}
	e.Via(openSecure(e, script, certs.ServeTrusted)).Dial("").Want("ADDED a")
	at := openSecure(e, script, func(c *tls.Config) { c.Certificates = []tls.Certificate{by.Issue(change)} })
	r := e.Remote(at)
	receiver, dialled := at.Client.Dial(e.Context(), &transport.Request{URL: at.WatchURL("watch=1")})
	if dialled == nil {
		receiver.Close()
	}
	watcher, watched := r.Watch(e.Context(), listwatch.Query{Start: listwatch.At, Version: 1})
	if watched == nil {
		watcher.Close()
	}
	_, listed := r.List(e.Context(), listwatch.Query{})
	for call, err := range map[string]error{"dial": dialled, "watch": watched, "list": listed} {
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(fmt.Sprint(err), "certificate") {
			e.Errorf("%s, %s: got %v, want an error of code Invalid that speaks of the certificate", what, call, err)
		}
	}
	if n := len(script.RequestTimes()); n != 1 {
		e.Errorf("%s: %d requests came through, want none", what, n-1)
	}
}

// openSecure opens a site of TLS, of which secure changes what it serves with.
func openSecure(e *harness.Env, h http.Handler, secure func(*tls.Config)) *harness.Route {
	e.Helper()
	e.Use(harness.InProcess)
	s := e.Setup
	s.TLS = true
	return e.RouteTo(harness.StartServer(e.T, s, h, secure))
}

func mutualTLS(e *harness.Env) {
	e.Put("a")
	showing := func(c tls.Certificate) *harness.Env {
		return withTLS(e, func(config *tls.Config) { config.Certificates = []tls.Certificate{c} })
	}
	showing(e.IssueCertificate(harness.Allowed)).Dial("").Want("ADDED a")
	if _, err := showing(e.IssueCertificate(harness.Denied)).TryDial("", transport.Request{}); !errors.Is(err, listwatch.Forbidden) {
		e.Errorf("the certificate of a user who may not watch: got %v, want an error of code Forbidden", err)
	}
	if _, err := e.TryDial("", transport.Request{}); err == nil {
		e.Error("without a certificate: got a watch")
	}
	if _, err := showing(certs.Untrusted().Issue(certs.ForUser(harness.Allowed))).TryDial("", transport.Request{}); err == nil {
		e.Error("with a certificate that nobody trusts: got a watch")
	}
}

func rotate(e *harness.Env) {
	e.Use(harness.InProcess)
	shown := func() string {
		c, ok := e.Connect(e.ALPN()...).(*tls.Conn)
		if !ok {
			e.Fatal("the connection has no TLS")
		}
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	s, before := e.Dial(harness.From(e.Put("a"))), shown()
	for range 3 {
		e.Internals.RotateCertificate()
		if after := shown(); after == before {
			e.Errorf("the server shows certificate %s after it has got another", before)
		}
		before = shown()
		e.Put("a")
		s.Want("MODIFIED a")
		fresh := withTLS(e, func(*tls.Config) {})
		fresh.Dial("").Want("ADDED a")
	}
}

func tlsTruncation(e *harness.Env) {
	event := harness.EventJSON("ADDED", "a", "5") + "\n"
	endsTruncated(e, "a stream", harness.ResponseHeader{ContentType: harness.JSONMediaType}, harness.SendPieces(event))
	if e.Transport == "h1" {
		endsTruncated(e, "an answer that ends with the connection", harness.ResponseHeader{ContentType: harness.JSONMediaType, EndsWithConnection: true}, harness.SendBytes(event))
	}
}

// vanishes is a part over TLS: the connection below it ends, and TLS says nothing.
func vanishes(p *harness.ScriptedServer) {
	if c, ok := p.Conn.(*tls.Conn).NetConn().(*net.TCPConn); ok {
		_ = c.CloseWrite() // the client may have left
	}
	harness.StayOpen(p)
}

// endsTruncated reads an event that play sends, and the end of the connection, which comes when the event has been read.
func endsTruncated(e *harness.Env, what string, h harness.ResponseHeader, play harness.Step) {
	e.Helper()
	read := make(chan struct{})
	s := e.Via(openSecure(e, e.ScriptedWithHeader(h, play, harness.WaitFor(read), vanishes), certs.ServeTrusted)).Dial("")
	s.Want("ADDED a")
	close(read)
	if w, err := s.Receive(); listwatch.CodeOf(err) != listwatch.Unavailable || errors.Is(err, io.EOF) {
		e.Errorf("%s: got %s, %v; want an error of code Unavailable", what, w.Object, err)
	}
}
