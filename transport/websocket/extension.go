package websocket

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// permessageDeflate is the name of the extension of RFC 7692.
const permessageDeflate = "permessage-deflate"

// The variants of permessage-deflate that a server agrees to (rfc7692#section-7.1.1). In both of
// them all watchers share the compressed messages of a server, and no connection keeps a
// compressor.
const (
	// separateDeflate compresses each message of the server separately.
	separateDeflate = permessageDeflate + "; server_no_context_takeover; client_no_context_takeover"
	// sharedDeflate lets a compressed message from the server refer to earlier ones. It is the
	// variant that the Client offers.
	sharedDeflate = permessageDeflate + "; client_no_context_takeover"
)

// An extension is an element of Sec-WebSocket-Extensions (rfc6455#section-9.1).
type extension struct {
	name   string
	params []parameter
}

type parameter struct {
	name, value string
	hasValue    bool
}

// parseExtensions returns the extensions in h. A quoted value must be a token too
// (rfc6455#section-9.1), so it contains no comma. A value with a comma is invalid: parseExtensions
// splits it, and the parts match nothing that is supported.
func parseExtensions(h http.Header) []extension {
	var all []extension
	for _, line := range h.Values("Sec-Websocket-Extensions") {
		for element := range strings.SplitSeq(line, ",") {
			name, rest, more := strings.Cut(element, ";")
			e := extension{name: strings.TrimSpace(name)}
			for more {
				var p string
				p, rest, more = strings.Cut(rest, ";")
				key, value, hasValue := strings.Cut(p, "=")
				value = unquote(strings.TrimSpace(value))
				e.params = append(e.params, parameter{strings.TrimSpace(key), value, hasValue})
			}
			if e.name != "" {
				all = append(all, e)
			}
		}
	}
	return all
}

func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// An agreement is the result of the negotiation of extensions. The zero value means no extension.
type agreement struct {
	deflate       bool // the peers agreed to permessage-deflate
	sharesHistory bool // messages of the server may refer to earlier ones
}

// acceptDeflate evaluates the offers of permessage-deflate in h, and returns the agreement and the
// answer. The answer is empty if no offer is acceptable. Messages share history if segments is true
// and the client did not exclude that.
//
// An offer with an unknown, invalid or repeated parameter must be declined (rfc7692#section-7.1).
// An offer that limits the server's window is declined because all watchers share messages that use
// the full window.
func acceptDeflate(h http.Header, segments bool) (answer string, agreed agreement) {
	for _, e := range parseExtensions(h) {
		if e.name != permessageDeflate || !e.hasValidParams(func(p parameter) bool {
			return p.name == "client_max_window_bits" && (!p.hasValue || p.isWindowSize())
		}) {
			continue
		}
		if segments && !e.has("server_no_context_takeover") {
			return sharedDeflate, agreement{deflate: true, sharesHistory: true}
		}
		return separateDeflate, agreement{deflate: true}
	}
	return "", agreement{}
}

// parseAgreement evaluates a server's answer to the offer of sharedDeflate, or to no offer. ok is
// false if the answer is not valid.
func parseAgreement(h http.Header) (agreed agreement, ok bool) {
	all := parseExtensions(h)
	if len(all) == 0 {
		return agreement{}, true
	}
	e := all[0]
	if len(all) > 1 || e.name != permessageDeflate ||
		!e.hasValidParams(func(p parameter) bool { return p.name == "server_max_window_bits" && p.isWindowSize() }) {
		return agreement{}, false
	}
	return agreement{deflate: true, sharesHistory: !e.has("server_no_context_takeover")}, true
}

// hasValidParams reports whether all parameters of a permessage-deflate extension are valid and
// none is repeated. A parameter is valid if it is one of the two no_context_takeover flags and has
// no value, or if alsoValid returns true for it.
func (e extension) hasValidParams(alsoValid func(parameter) bool) bool {
	seen := map[string]bool{}
	for _, p := range e.params {
		isFlag := p.name == "server_no_context_takeover" || p.name == "client_no_context_takeover"
		if seen[p.name] || !(isFlag && !p.hasValue || alsoValid(p)) {
			return false
		}
		seen[p.name] = true
	}
	return true
}

func (e extension) has(name string) bool {
	return slices.ContainsFunc(e.params, func(p parameter) bool { return p.name == name })
}

// isWindowSize reports whether the value of p is the base-2 logarithm of a window size, without
// leading zeros: rfc7692#section-7.1.2.
func (p parameter) isWindowSize() bool {
	bits, err := strconv.ParseUint(p.value, 10, 8)
	return err == nil && bits >= 8 && bits <= 15 && p.value == strconv.FormatUint(bits, 10)
}
