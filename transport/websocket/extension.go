package websocket

import (
	"net/http"
	"strconv"
	"strings"
)

// permessageDeflate is the name of the extension of RFC 7692.
const permessageDeflate = "permessage-deflate"

// agreedDeflate is what the server agrees to and the client offers: each message is compressed by itself (rfc7692#section-7.1.1), so
// that those of a server are the same for all watchers, and nobody keeps a compressor.
const agreedDeflate = permessageDeflate + "; server_no_context_takeover; client_no_context_takeover"

// An extension is an element of Sec-WebSocket-Extensions (rfc6455#section-9.1).
type extension struct {
	name   string
	params []parameter
}

type parameter struct {
	name, value string
	valued      bool
}

// extensionsOf returns those that h names. A value in quotes is a token too (rfc6455#section-9.1), so there is no comma in it; one that
// has one falls apart, and fits nothing.
func extensionsOf(h http.Header) []extension {
	var all []extension
	for _, line := range h.Values("Sec-Websocket-Extensions") {
		for element := range strings.SplitSeq(line, ",") {
			name, rest, more := strings.Cut(element, ";")
			e := extension{name: strings.TrimSpace(name)}
			for more {
				var p string
				p, rest, more = strings.Cut(rest, ";")
				key, value, valued := strings.Cut(p, "=")
				e.params = append(e.params, parameter{strings.TrimSpace(key), unquote(strings.TrimSpace(value)), valued})
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

// offersDeflate reports whether h offers permessage-deflate in a way that can be agreed to with agreedDeflate. An offer with a parameter
// that is unknown, not valid or there twice must be declined (rfc7692#section-7.1); one that limits the server's window is, because
// all watchers get messages with the full one.
func offersDeflate(h http.Header) bool {
	for _, e := range extensionsOf(h) {
		if e.name == permessageDeflate && e.valid(func(p parameter) bool {
			return p.name == "client_max_window_bits" && (!p.valued || p.isWindow())
		}) {
			return true
		}
	}
	return false
}

// agreesToDeflate reports whether h agrees to an offer of agreedDeflate; ok is false where it agrees to anything else.
func agreesToDeflate(h http.Header) (agreed, ok bool) {
	all := extensionsOf(h)
	if len(all) == 0 {
		return false, true
	}
	e := all[0]
	ok = len(all) == 1 && e.name == permessageDeflate && e.has("server_no_context_takeover") &&
		e.valid(func(p parameter) bool { return p.name == "server_max_window_bits" && p.isWindow() })
	return ok, ok
}

// valid reports whether all parameters of a permessage-deflate are valid, each there once: those without a value that both sides may
// name, and those that more allows.
func (e extension) valid(more func(parameter) bool) bool {
	seen := map[string]bool{}
	for _, p := range e.params {
		isFlag := p.name == "server_no_context_takeover" || p.name == "client_no_context_takeover"
		if seen[p.name] || !(isFlag && !p.valued || more(p)) {
			return false
		}
		seen[p.name] = true
	}
	return true
}

func (e extension) has(name string) bool {
	for _, p := range e.params {
		if p.name == name {
			return true
		}
	}
	return false
}

// isWindow reports whether p is the base-2 logarithm of a window, without leading zeros: rfc7692#section-7.1.2.
func (p parameter) isWindow() bool {
	bits, err := strconv.ParseUint(p.value, 10, 8)
	return err == nil && bits >= 8 && bits <= 15 && p.value == strconv.FormatUint(bits, 10)
}
