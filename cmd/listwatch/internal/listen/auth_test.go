package listen

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestNonLoopbackRequiresCredentials(t *testing.T) {
	for _, c := range []struct {
		a             Auth
		authenticated bool
		addr          string
		allowed       bool
	}{
		{Auth{}, false, "127.0.0.1:0", true},
		{Auth{}, false, "127.9.9.9:0", true},
		{Auth{}, false, "[::1]:0", true},
		{Auth{}, false, "localhost:0", true},
		{Auth{}, false, ":8080", false},
		{Auth{}, false, "0.0.0.0:8080", false},
		{Auth{}, false, "[::]:8080", false},
		{Auth{}, false, "192.0.2.1:8080", false},
		{Auth{}, true, "0.0.0.0:8080", true},
		{Auth{insecure: true}, false, "0.0.0.0:8080", true},
	} {
		if err := c.a.checkAddress("--addr", c.addr, c.authenticated); (err == nil) != c.allowed {
			t.Errorf("%s, authenticated %v, insecure %v: got error %v, want allowed %v", c.addr, c.authenticated,
				c.a.insecure, err, c.allowed)
		}
	}
}

func TestIsLocalHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "a.localhost": true, "127.0.0.1": true, "127.0.0.1:80": true,
		"[::1]:80": true, "[::1]": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "10.0.0.1": false,
		"0.0.0.0": false, "": false,
	} {
		if got := isLocalHost(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}

func TestExpiredCertificatesAreNotTrusted(t *testing.T) {
	ca := &x509.Certificate{Raw: []byte("a CA"), NotAfter: time.Now().Add(time.Hour)}
	trusted := &trustedCAs{pool: x509.NewCertPool(), raw: map[string]bool{"a CA": true}}
	for left, want := range map[time.Duration]bool{time.Hour: true, -time.Hour: false} {
		leaf := &x509.Certificate{Raw: []byte("a client"), NotAfter: time.Now().Add(left)}
		if got := trusted.trust([][]*x509.Certificate{{leaf, ca}}); got != want {
			t.Errorf("a certificate that is valid for %v: got %v, want %v", left, got, want)
		}
	}
}
