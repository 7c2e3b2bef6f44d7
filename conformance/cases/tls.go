package cases

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
	"github.com/listwatch/listwatch/transport"
)

// withTLS returns e with a client of its own, whose TLS is what change makes of it.
func (e *env) withTLS(change func(*tls.Config)) *env {
	s := *e.Instance
	s.Network.TLS = s.Network.TLS.Clone()
	change(s.Network.TLS)
	return e.at(&site{&s, e.newClient(&s, e.way)})
}

func tlsVersions(e *env) {
	e.put("a")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		e.withTLS(func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }).dial("").want("ADDED a")
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		old := e.withTLS(func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = version, version
			c.ServerName, c.NextProtos = "127.0.0.1", e.protocols()
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

func badCA(e *env) {
	e.refuses("a certificate that nobody trusts", strange(), serves)
	server := ours().issue(serves)
	if key, ok := server.PrivateKey.(*ecdsa.PrivateKey); ok {
		e.refuses("a certificate that another server has signed", &authority{key: key, cert: server.Leaf}, serves)
	}
}

func wrongName(e *env) {
	e.refuses("that of another address", ours(), func(c *x509.Certificate) {
		serves(c)
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)}
	})
	e.refuses("that of a host whose name is the address", ours(), func(c *x509.Certificate) {
		serves(c)
		c.Subject.CommonName, c.IPAddresses, c.DNSNames = "127.0.0.1", nil, []string{"127.0.0.1", "*"}
	})
	e.refuses("that of a client", ours(), func(c *x509.Certificate) {
		serves(c)
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

func expiredCertificate(e *env) {
	e.refuses("one that is valid no more", ours(), func(c *x509.Certificate) {
		serves(c)
		c.NotAfter = time.Now().Add(-time.Hour)
	})
	e.refuses("one that is not valid yet", ours(), func(c *x509.Certificate) {
		serves(c)
		c.NotBefore = time.Now().Add(time.Hour)
	})
}

// refuses has a server show a certificate that by signed, to the client, which must not ask it for anything; and before that a sound one.
func (e *env) refuses(what string, by *authority, change func(*x509.Certificate)) {
	e.Helper()
	script := &script{env: e, steps: []http.HandlerFunc{e.sends(added("a", "5"))}}
	e.at(e.openSecure(script, sound)).dial("").want("ADDED a")
	at := e.openSecure(script, func(c *tls.Config) { c.Certificates = []tls.Certificate{by.issue(change)} })
	r := e.remote(at)
	receiver, dialled := at.client.Dial(e.Context(), &transport.Request{URL: at.watched("watch=1")})
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
	if n := len(script.times()); n != 1 {
		e.Errorf("%s: %d requests came through, want none", what, n-1)
	}
}

// openSecure opens a site of TLS, of which secure changes what it serves with.
func (e *env) openSecure(h http.Handler, secure func(*tls.Config)) *site {
	e.Helper()
	e.use(InProcess)
	s := e.setup
	s.TLS = true
	return e.reach(openSite(e.T, s, h, secure))
}

func mutualTLS(e *env) {
	e.put("a")
	showing := func(c tls.Certificate) *env {
		return e.withTLS(func(config *tls.Config) { config.Certificates = []tls.Certificate{c} })
	}
	showing(e.IssueCertificate(Allowed)).dial("").want("ADDED a")
	if _, err := showing(e.IssueCertificate(Denied)).tryDial("", transport.Request{}); !errors.Is(err, listwatch.Forbidden) {
		e.Errorf("the certificate of a user who may not watch: got %v, want an error of code Forbidden", err)
	}
	if _, err := e.tryDial("", transport.Request{}); err == nil {
		e.Error("without a certificate: got a watch")
	}
	if _, err := showing(strange().issue(identifies(Allowed))).tryDial("", transport.Request{}); err == nil {
		e.Error("with a certificate that nobody trusts: got a watch")
	}
}

func rotate(e *env) {
	e.use(InProcess)
	shown := func() string {
		c, ok := e.connect(e.protocols()...).(*tls.Conn)
		if !ok {
			e.Fatal("the connection has no TLS")
		}
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	s, before := e.dial(from(e.put("a"))), shown()
	for range 3 {
		e.inside.rotate()
		if after := shown(); after == before {
			e.Errorf("the server shows certificate %s after it has got another", before)
		}
		before = shown()
		e.put("a")
		s.want("MODIFIED a")
		fresh := e.withTLS(func(*tls.Config) {})
		fresh.dial("").want("ADDED a")
	}
}

func tlsTruncation(e *env) {
	event := tiny("ADDED", "a", "5") + "\n"
	e.endsTruncated("a stream", head{contentType: jsonType}, pieces(event))
	if e.on == "h1" {
		e.endsTruncated("an answer that ends with the connection", head{contentType: jsonType, whole: true}, raws(event))
	}
}

// vanishes is a part over TLS: the connection below it ends, and TLS says nothing.
func vanishes(p *peer) {
	if c, ok := p.conn.(*tls.Conn).NetConn().(*net.TCPConn); ok {
		_ = c.CloseWrite() // the client may have left
	}
	stays(p)
}

// endsTruncated reads an event that play sends, and the end of the connection, which comes when the event has been read.
func (e *env) endsTruncated(what string, h head, play part) {
	e.Helper()
	read := make(chan struct{})
	s := e.at(e.openSecure(e.byHandAs(h, play, after(read), vanishes), sound)).dial("")
	s.want("ADDED a")
	close(read)
	if w, err := s.Receive(); listwatch.CodeOf(err) != listwatch.Unavailable || errors.Is(err, io.EOF) {
		e.Errorf("%s: got %s, %v; want an error of code Unavailable", what, w.Object, err)
	}
}
