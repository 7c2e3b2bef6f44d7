package listen

import (
	"testing"

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
			t.Errorf("%s, authenticated %v, insecure %v: got error %v, want allowed %v", c.addr, c.authenticated, c.a.insecure, err, c.allowed)
		}
	}
}

func TestIsLocalHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "a.localhost": true, "127.0.0.1": true, "127.0.0.1:80": true, "[::1]:80": true, "[::1]": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "10.0.0.1": false, "0.0.0.0": false, "": false,
	} {
		if got := isLocalHost(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}
