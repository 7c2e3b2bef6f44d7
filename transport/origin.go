package transport

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/listwatch/listwatch"
)

// OriginAllowed reports whether the page that sent r may read the answer: r has no Origin, which only browsers send; its Origin is
// the server itself, by r's Host; or one of patterns matches it. The opaque origin "null" is always foreign.
//
// A pattern is an origin, such as "https://app.example.com", whose host may hold wildcards, as in "https://*.example.com", each
// standing for any number of characters, and whose port may be "*", as in "http://127.0.0.1:*". A port that is left out is the scheme's. The
// pattern "*" matches every origin. A pattern that [CheckOrigins] refuses matches nothing. See RFC 6455 section 10.2, RFC 6454.
func OriginAllowed(r *http.Request, patterns []string) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	o, ok := parseOrigin(values[0])
	if !ok || len(values) > 1 || strings.Contains(o.host, "*") || o.port == "*" {
		return false
	}
	return o.isHostOf(r) || o.matchesAny(patterns)
}

// CheckOrigins returns an error of code Invalid that names the first of patterns that is none; nil where all are.
func CheckOrigins(patterns []string) error {
	for _, p := range patterns {
		if _, ok := parseOrigin(p); !ok && p != "*" {
			return &listwatch.Error{
				Code: listwatch.Invalid, Op: "check origins",
				Message: fmt.Sprintf("%q is no origin pattern, want one like https://*.example.com or http://127.0.0.1:*", p),
			}
		}
	}
	return nil
}

// An origin is the text of one, in lower case. The host has no brackets; the port is the scheme's where none is given.
type origin struct {
	scheme, host, port string
	literal            bool // the host is an IPv6 address, in which nothing is a wildcard
}

// parseOrigin reads an origin or a pattern of one: scheme://host or scheme://host:port and nothing else.
func parseOrigin(s string) (origin, bool) {
	scheme, rest, ok := strings.Cut(strings.ToLower(s), "://")
	if !ok || scheme == "" || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return origin{}, false
	}
	o := origin{scheme: scheme}
	o.host, o.port, o.literal, ok = splitHost(rest)
	if o.port == "" {
		o.port = defaultPort(scheme)
	}
	return o, ok
}

// splitHost splits host, host:port, [v6] or [v6]:port. The port may be "*", and empty where there is none.
func splitHost(s string) (host, port string, literal, ok bool) {
	host = s
	if rest, found := strings.CutPrefix(s, "["); found {
		literal = true
		if host, rest, ok = strings.Cut(rest, "]"); !ok || rest != "" && rest[0] != ':' {
			return "", "", false, false
		}
		port = strings.TrimPrefix(rest, ":")
		ok = strings.Trim(host, "0123456789abcdef:.") == "" && (rest == "" || port != "")
	} else {
		var colon bool
		host, port, colon = strings.Cut(s, ":")
		// A letter beyond ASCII may stand in a Host; an Origin has it in punycode.
		ok = !strings.ContainsAny(host, "/\\?#@[]%^ \t") && (!colon || port != "")
	}
	ok = ok && host != "" && (port == "*" || len(port) <= 5 && strings.Trim(port, "0123456789") == "")
	return host, port, literal, ok
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

// isHostOf reports whether o is where r was sent. A server behind a proxy that ends TLS can't tell which scheme the client used:
// then the port that Host leaves out is that of o's scheme.
func (o origin) isHostOf(r *http.Request) bool {
	if r.TLS != nil && o.scheme != "https" {
		return false
	}
	host, port, literal, ok := splitHost(strings.ToLower(r.Host))
	if port == "" {
		port = defaultPort(o.scheme)
	}
	return ok && o.host == host && o.port == port && o.literal == literal
}

func (o origin) matchesAny(patterns []string) bool {
	for _, s := range patterns {
		if s == "*" {
			return true
		}
		if p, ok := parseOrigin(s); ok && p.matches(o) {
			return true
		}
	}
	return false
}

// matches reports whether p, a pattern, matches o as a whole.
func (p origin) matches(o origin) bool {
	if p.scheme != o.scheme || p.literal != o.literal || p.port != "*" && p.port != o.port {
		return false
	}
	// splitHost has let through no special character of path.Match but the star.
	matched, err := path.Match(p.host, o.host)
	return matched && err == nil
}
