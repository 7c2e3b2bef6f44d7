package transport

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/listwatch/listwatch"
)

// OriginAllowed reports whether the web page that sent r may read the response. It may in three
// cases: r has no Origin header (only browsers send one), the Origin is the server itself according
// to the Host of r, or a pattern matches the Origin. The opaque origin "null" is never allowed. See
// RFC 6455, section 10.2, and RFC 6454. A request whose header Sec-Fetch-Site is "same-origin"
// comes from the server itself, too, even if a proxy has changed Host: browsers send this header,
// and pages cannot set it (Fetch Metadata Request Headers, section 2.3).
//
// A pattern is an origin, such as "https://app.example.com". Its host may contain wildcards, as in
// "https://*.example.com". Each wildcard matches any number of characters. Its port may be "*", as
// in "http://127.0.0.1:*". If the pattern has no port, it has the default port of the scheme. The
// pattern "*" matches every origin. A pattern that [CheckOrigins] rejects matches no origin.
func OriginAllowed(r *http.Request, patterns []string) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	o, ok := parseOrigin(values[0])
	if !ok || len(values) > 1 || strings.Contains(o.host, "*") || o.port == "*" {
		return false
	}
	return o.isHostOf(r) || o.isSameOrigin(r) || o.matchesAny(patterns)
}

// CheckOrigins returns an error of code Invalid for the first invalid pattern, or nil if all
// patterns are valid.
func CheckOrigins(patterns []string) error {
	for _, p := range patterns {
		if _, ok := parseOrigin(p); !ok && p != "*" {
			return &listwatch.Error{
				Code: listwatch.Invalid, Op: "check origins",
				Message: fmt.Sprintf("origin pattern %q: must be like https://*.example.com or http://127.0.0.1:*", p),
			}
		}
	}
	return nil
}

// An origin is a parsed origin, or a pattern, in lower case. The host has no brackets. The port
// is the default port of the scheme if the text has none.
type origin struct {
	scheme, host, port string
	isIPv6             bool // the host is an IPv6 address, which has no wildcards
}

// parseOrigin parses an origin, or a pattern, of the form scheme://host or scheme://host:port.
func parseOrigin(s string) (origin, bool) {
	scheme, rest, ok := strings.Cut(strings.ToLower(s), "://")
	if !ok || scheme == "" || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return origin{}, false
	}
	o := origin{scheme: scheme}
	o.host, o.port, o.isIPv6, ok = splitHost(rest)
	if o.port == "" {
		o.port = defaultPort(scheme)
	}
	return o, ok
}

// splitHost splits host, host:port, [v6] or [v6]:port. The port may be "*". The result port is
// empty if s has none.
func splitHost(s string) (host, port string, isIPv6, ok bool) {
	host = s
	if rest, found := strings.CutPrefix(s, "["); found {
		isIPv6 = true
		if host, rest, ok = strings.Cut(rest, "]"); !ok || rest != "" && rest[0] != ':' {
			return "", "", false, false
		}
		port = strings.TrimPrefix(rest, ":")
		ok = strings.Trim(host, "0123456789abcdef:.") == "" && (rest == "" || port != "")
	} else {
		var colon bool
		host, port, colon = strings.Cut(s, ":")
		// A Host header may contain letters beyond ASCII, so splitHost allows them. An Origin
		// header has punycode instead.
		ok = !strings.ContainsAny(host, "/\\?#@[]%^ \t") && (!colon || port != "")
	}
	ok = ok && host != "" && (port == "*" || len(port) <= 5 && strings.Trim(port, "0123456789") == "")
	return host, port, isIPv6, ok
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http", "ws":
		return "80"
	case "https", "wss":
		return "443"
	}
	return ""
}

// isHostOf reports whether o is the origin of the server to which r was sent. A server behind a
// proxy that terminates TLS does not know which scheme the client used. So if Host has no port,
// isHostOf assumes the default port of o's scheme. The scheme must be http or https. A program can
// give pages of its own scheme any host, as in tauri://localhost, so such pages need not come from
// this server.
func (o origin) isHostOf(r *http.Request) bool {
	if o.scheme != "https" && (r.TLS != nil || o.scheme != "http") {
		return false
	}
	host, port, isIPv6, ok := splitHost(strings.ToLower(r.Host))
	if port == "" {
		port = defaultPort(o.scheme)
	}
	isSameHost := strings.TrimSuffix(o.host, ".") == strings.TrimSuffix(host, ".")
	return ok && isSameHost && o.port == port && o.isIPv6 == isIPv6
}

// isSameOrigin reports whether the browser that sent r says that o is the origin of the server.
// Only the schemes of the web count, as in isHostOf.
func (o origin) isSameOrigin(r *http.Request) bool {
	site := r.Header.Values("Sec-Fetch-Site")
	return len(site) == 1 && site[0] == "same-origin" && (o.scheme == "https" || o.scheme == "http")
}

func (o origin) matchesAny(patterns []string) bool {
	for _, s := range patterns {
		if s == "*" {
			return true
		}
		if p, ok := parseOrigin(s); ok && o.isMatchedBy(p) {
			return true
		}
	}
	return false
}

// isMatchedBy reports whether the pattern matches o.
func (o origin) isMatchedBy(pattern origin) bool {
	if pattern.scheme != o.scheme || pattern.isIPv6 != o.isIPv6 || pattern.port != "*" && pattern.port != o.port {
		return false
	}
	// The only special character of path.Match that splitHost accepts is the star.
	matched, err := path.Match(pattern.host, o.host)
	return matched && err == nil
}
