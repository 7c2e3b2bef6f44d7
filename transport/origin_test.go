package transport

import (
	"crypto/tls"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

// Conformance cases cors/same-origin, ws-foreign-origin, ws-null-origin and ws-no-origin.
func TestOriginAllowed(t *testing.T) {
	patterns := []string{
		"https://app.example.com", "https://*.wild.example", "http://127.0.0.1:*", "http://[::1]:*",
		"HTTPS://Case.Example:8443",
		"chrome-extension://abc", "bad", "https://path.example/x", "https://ra[a-z]nge.example",
	}
	tests := []struct {
		origin, host string
		tls, want    bool
	}{
		{"", "h", false, true},
		// The origin of the server itself.
		{"http://h", "h", false, true},
		{"http://h:80", "H", false, true},
		{"http://H", "h:80", false, true},
		{"http://h:8080", "h:8080", false, true},
		{"http://h:8081", "h:8080", false, false},
		{"http://h", "h:8080", false, false},
		// A page of another port is a page of another server, even if a proxy has removed the port.
		{"http://h:8080", "h", false, false},
		{"https://h:8443", "h", true, false},
		{"https://h", "h.", false, true}, // the root of the DNS
		{"https://h.", "h", false, true},
		{"https://h", "h", false, true}, // behind a proxy that terminates TLS
		{"https://h", "h", true, true},
		{"https://h:443", "h", true, true},
		{"https://h", "h:443", true, true},
		{"http://h", "h", true, false},
		{"http://[::1]:8080", "[::1]:8080", false, true},
		{"http://[::1]", "[::1]", false, true},
		{"http://[fe80::AB]", "[FE80::ab]:80", false, true},
		{"http://[::7]", "::7", false, false},
		{"http://h.evil", "h", false, false},
		{"http://evil-h", "h", false, false},
		{"http://h@evil", "h", false, false},
		{"http://h/", "h", false, false},
		{"http://*", "h", false, false},
		{"http://", "", false, false},
		{"h", "h", false, false},
		{"null", "null", false, false},
		// Schemes of programs, whose pages may name any host.
		{"tauri://h", "h", false, false},
		{"chrome-extension://h", "h", false, false},
		{"tauri://h", "h", true, false},
		// Origins that one of the patterns allows, and similar ones that none allows.
		{"https://app.example.com", "h", false, true},
		{"https://APP.example.com:443", "h", false, true},
		{"http://app.example.com", "h", false, false},
		{"https://app.example.com:444", "h", false, false},
		{"https://app.example.com.evil", "h", false, false},
		{"https://xapp.example.com", "h", false, false},
		{"https://a.wild.example", "h", false, true},
		{"https://a.b.wild.example", "h", false, true},
		{"https://wild.example", "h", false, false},
		{"https://evilwild.example", "h", false, false},
		{"https://a.wild.example.evil", "h", false, false},
		{"https://evil/.wild.example", "h", false, false},
		{"http://127.0.0.1:1", "h", false, true},
		{"http://127.0.0.1", "h", false, true},
		{"http://127.0.0.11", "h", false, false},
		{"http://127.0.0.1:x", "h", false, false},
		{"http://127.0.0.1:*", "h", false, false},
		{"http://[::1]:5000", "h", false, true},
		{"http://[::2]:5000", "h", false, false},
		{"https://case.example:8443", "h", false, true},
		{"chrome-extension://abc", "h", false, true},
		{"chrome-extension://abd", "h", false, false},
		{"https://path.example", "h", false, false},
		{"https://rabnge.example", "h", false, false},
	}
	for _, tt := range tests {
		r := &http.Request{Host: tt.host, Header: http.Header{}}
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if tt.tls {
			r.TLS = new(tls.ConnectionState)
		}
		if got := OriginAllowed(r, patterns); got != tt.want {
			t.Errorf("origin %q at host %q, TLS %v: got %v", tt.origin, tt.host, tt.tls, got)
		}
	}
}

// A proxy may send its own name for the server as the Host.
func TestSameOriginIsAllowedWithAnyHost(t *testing.T) {
	for _, tt := range []struct {
		origin string
		site   []string
		want   bool
	}{
		{"https://app.example.com", []string{"same-origin"}, true},
		{"https://app.example.com", nil, false},
		{"https://app.example.com", []string{"same-site"}, false},
		{"https://app.example.com", []string{"cross-site"}, false},
		{"https://app.example.com", []string{"same-origin", "cross-site"}, false},
		{"null", []string{"same-origin"}, false},
		{"tauri://localhost", []string{"same-origin"}, false},
	} {
		r := &http.Request{
			Host:   "127.0.0.1:8080",
			Header: http.Header{"Origin": {tt.origin}, "Sec-Fetch-Site": tt.site},
		}
		if got := OriginAllowed(r, nil); got != tt.want {
			t.Errorf("Origin %s, Sec-Fetch-Site %q: got %t, want %t", tt.origin, tt.site, got, tt.want)
		}
	}
}

func TestStarAllowsEveryOriginExceptNull(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://any.example": true, "http://[::5]:1": true, "null": false,
		"": false,
	} {
		r := &http.Request{Host: "h", Header: http.Header{"Origin": {origin}}}
		if got := OriginAllowed(r, []string{"*"}); got != want {
			t.Errorf("%q: got %v", origin, got)
		}
	}
	two := &http.Request{Host: "h", Header: http.Header{"Origin": {"http://h", "http://h"}}}
	if OriginAllowed(two, []string{"*"}) {
		t.Error("two origins were allowed")
	}
}

func TestCheckOriginsReportsInvalidPatterns(t *testing.T) {
	good := []string{
		"*", "https://*.example.com", "http://127.0.0.1:*", "http://[::1]", "app://x",
		"http://localhost:8080", "https://*",
	}
	if err := CheckOrigins(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		"", "example.com", "https://", "https://x/", "https://x:", "https://x:port", "https://x:123456", "://x",
		"https://a@b",
		"https://[::1", "https://[::1]x", "https://[*]", "https://a?b", "https://a[b]", "https://a\\b", "null", "**",
		"https://x:8*",
	} {
		err := CheckOrigins([]string{"https://ok.example", bad})
		if listwatch.CodeOf(err) != listwatch.Invalid || !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// FuzzOrigin checks two properties. A pattern without a wildcard allows only an origin that
// is equal except for case and the default port. Without patterns only the origin of the
// server is allowed.
func FuzzOrigin(f *testing.F) {
	f.Add("https://app.example.com", "https://app.example.com", "h")
	f.Add("http://*", "http://127.0.0.1:*", "127.0.0.1")
	f.Add("http://[::1]:80", "http://[::*]", "[::1]:8080")
	f.Add("null", "*", "null")
	f.Fuzz(func(t *testing.T, text, pattern, host string) {
		r := &http.Request{Host: host, Header: http.Header{"Origin": {text}}}
		if OriginAllowed(r, nil) {
			_, rest, _ := strings.Cut(strings.ToLower(text), "://")
			h, _, _, _ := splitHost(strings.ToLower(host))
			if !strings.Contains(rest, h) {
				t.Errorf("%q is allowed as the origin of the server %q", text, host)
			}
			return
		}
		allowed := OriginAllowed(r, []string{pattern})
		if allowed && CheckOrigins([]string{pattern}) != nil {
			t.Errorf("%q matches %q, which is not a valid pattern", text, pattern)
		}
		if allowed && !strings.Contains(pattern, "*") {
			a, _ := parseOrigin(text)
			if b, _ := parseOrigin(pattern); a != b {
				t.Errorf("%q matches %q", text, pattern)
			}
		}
	})
}
