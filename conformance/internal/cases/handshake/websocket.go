package handshake

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

func wsAccept(e *harness.Env) {
	h := e.WatchRaw("").WantStatus(http.StatusSwitchingProtocols)
	if got := h.Values("Sec-WebSocket-Accept"); !slices.Equal(got, []string{harness.SampleAccept}) {
		e.Errorf("got Sec-WebSocket-Accept %q, want %s", got, harness.SampleAccept)
	}
	if !strings.EqualFold(h.Get("Upgrade"), "websocket") || !strings.EqualFold(h.Get("Connection"), "upgrade") {
		e.Errorf("got headers %v, want Upgrade: websocket and Connection: Upgrade", h)
	}
}

func wsConnectionList(e *harness.Env) {
	for _, header := range [][]string{
		{"Connection", "keep-alive, Upgrade"},
		{"connection", "KEEP-ALIVE,uPgRaDe", "UPGRADE", "WebSocket"},
		{"Connection", "keep-alive", "Connection", "upgrade"},
		{"Connection", "upgrade ,", "Upgrade", "h2c, websocket"},
	} {
		h := e.WatchRaw("", header...).WantStatus(http.StatusSwitchingProtocols)
		if h.Get("Sec-WebSocket-Accept") != harness.SampleAccept {
			e.Errorf("%q: got headers %v, want an upgrade", header, h)
		}
	}
}

func wsVersion(e *harness.Env) {
	for _, version := range []string{"8", "12", "14", "130", "x", ""} {
		a := e.WatchRaw("", "Sec-WebSocket-Version", version)
		a.WantHandshakeRefused(http.StatusUpgradeRequired, "UpgradeRequired")
		if got := a.Headers.Values("Sec-WebSocket-Version"); !slices.Equal(got, []string{"13"}) {
			e.Errorf("requested version %q: got Sec-WebSocket-Version %q, want 13", version, got)
		}
	}
}

// hasKey reports whether the handshake of a WebSocket has a key. Over HTTP/2 it has no key (RFC
// 8441, section 5).
func hasKey(w harness.Variant) bool { return !w.OpensOverHTTP2() }

func wsNoKey(e *harness.Env) {
	e.WatchRaw("", "Sec-WebSocket-Key", "").WantHandshakeRefused(http.StatusBadRequest, "BadRequest")
}

func wsBadKey(e *harness.Env) {
	for _, header := range [][]string{
		{"Sec-WebSocket-Key", "x"},
		// a key of 15 bytes instead of 16
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j"},
		// a key of 17 bytes
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZTE="},
		// a key without the base64 padding
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ"},
		// as many characters as a valid key has, but not base64
		{"Sec-WebSocket-Key", "this is no base64 at all"},
		// two keys
		{"Sec-WebSocket-Key", harness.SampleKey, "Sec-WebSocket-Key", "AQIDBAUGBwgJCgsMDQ4PEA=="},
	} {
		e.WatchRaw("", header...).WantHandshakeRefused(http.StatusBadRequest, "BadRequest")
	}
}

func wsOverH2(e *harness.Env) {
	e.Use(harness.InProcess) // to permit extended CONNECT
	for protocol, want := range map[string]int{"websocket": http.StatusOK, "connect-udp": http.StatusNotImplemented} {
		header := []string{":protocol", protocol, "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", harness.SampleKey}
		a := e.RequestHTTP2(e.ConnectDirectly("h2"), http.MethodConnect, "?watch=1", header)
		for _, name := range []string{"Sec-WebSocket-Accept", "Upgrade", "Connection"} {
			if got := a.WantStatus(want).Values(name); got != nil {
				e.Errorf("%s: got %s %q, want none", protocol, name, got)
			}
		}
	}
}

func wsNotGet(e *harness.Env) {
	for _, method := range []string{"POST", "PUT", "HEAD", "OPTIONS"} {
		a := e.RequestRaw(method, "?watch=1", "Content-Length", "0")
		if a.Status < 400 || a.Headers.Get("Sec-WebSocket-Accept") != "" {
			e.Errorf("%s: got status %d and headers %v, want an error", method, a.Status, a.Headers)
		}
	}
}

func wsSubprotocolUnknown(e *harness.Env) {
	for _, offer := range []string{
		"base64.binary.k8s.io", "chat, superchat", "base64url.bearer.authorization.k8s.io.dG9rZW4",
	} {
		h := e.WatchRaw("", "Sec-WebSocket-Protocol", offer).WantStatus(http.StatusSwitchingProtocols)
		if got := h.Values("Sec-WebSocket-Protocol"); got != nil {
			e.Errorf("offered %s: got %q, want no subprotocol", offer, got)
		}
	}
}

var subprotocolJSON = framing.JSON{}.Subprotocol()

func wsSubprotocolChosen(e *harness.Env) {
	offer := "chat, " + subprotocolJSON
	a := e.WatchRaw("", "Sec-WebSocket-Protocol", offer)
	if !e.Supports(harness.InProcess) &&
		(a.Status != http.StatusSwitchingProtocols || a.Headers.Get("Sec-WebSocket-Protocol") == "") {
		e.Skipf("the server does not speak %s", subprotocolJSON)
	}
	if got := a.WantStatus(http.StatusSwitchingProtocols).Values("Sec-WebSocket-Protocol"); !slices.Equal(got,
		[]string{subprotocolJSON}) {
		e.Errorf("offered %s: got subprotocol %q, want ours", offer, got)
	}
	s := e.DialRequest("", transport.Request{Header: http.Header{"Sec-Websocket-Protocol": {offer}}})
	if got := s.Header().Get("Sec-WebSocket-Protocol"); got != subprotocolJSON {
		e.Errorf("the client offered %s and got subprotocol %q, want ours", offer, got)
	}
	e.Put("a")
	s.Want("ADDED a")
}

func errorBeforeUpgrade(e *harness.Env) {
	e.WatchRaw("labelSelector=!!").WantRefused(http.StatusBadRequest, "BadRequest")
	e.WatchRaw("sendInitialEvents=true").WantRefused(http.StatusUnprocessableEntity, "Invalid")
	e.WatchRaw("", "Accept", "image/png").WantRefused(http.StatusNotAcceptable, "NotAcceptable")
}
