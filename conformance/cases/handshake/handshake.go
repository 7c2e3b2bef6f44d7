package handshake

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
)

func h1Chunked(e *harness.Env) {
	a := e.WatchRaw("")
	h := a.WantStatus(http.StatusOK)
	if got := h.Values("Transfer-Encoding"); !slices.Equal(got, []string{"chunked"}) {
		e.Errorf("got Transfer-Encoding %q, want chunked, once", got)
	}
	if got := h.Values("Content-Length"); got != nil {
		e.Errorf("got Content-Length %q, want none", got)
	}
	e.Put("a")
	if got := string(a.ReadFirst()); got != harness.JSONEventPrefix {
		e.Errorf("the body, decoded from its chunks, begins %q, want an event", got)
	}
}

func h2Headers(e *harness.Env) {
	h := e.WatchRaw("").WantStatus(http.StatusOK)
	for _, name := range []string{"Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade"} {
		if got := h.Values(name); got != nil {
			e.Errorf("got %s: %q, want none", name, got)
		}
	}
}

func headersBeforeEvents(e *harness.Env) {
	a := e.WatchRaw("") // returns when the headers are there
	a.WantStatus(http.StatusOK)
	e.Put("a")
	if got := string(a.ReadFirst()); got != harness.JSONEventPrefix {
		e.Errorf("got %q, want the event of a write that came after the headers", got)
	}
}

func contentType(e *harness.Env) {
	for accept, want := range map[string]string{
		"application/json":                        "application/json",
		"text/event-stream":                       "text/event-stream",
		"application/json-seq":                    "application/json-seq",
		"application/cbor-seq":                    "application/cbor-seq",
		"application/cbor":                        "application/cbor-seq",
		"application/vnd.listwatch.json-prefixed": "application/vnd.listwatch.json-prefixed",
		"application/json;stream=watch":           "application/json",
		"application/json;charset=utf-8":          "application/json",
	} {
		a := e.WatchRaw("", "Accept", accept)
		if want != harness.JSONMediaType && a.Status == http.StatusNotAcceptable && !e.Can(harness.InProcess) {
			continue // a server has JSON, and what else it likes
		}
		if got := a.WantStatus(http.StatusOK).Values("Content-Type"); !slices.Equal(got, []string{want}) {
			e.Errorf("Accept %s: got Content-Type %q, want %s", accept, got, want)
		}
	}
}

func alpn(e *harness.Env) {
	offers := [][]string{{"h2", "http/1.1"}, {"http/1.1", "h2"}, {"h2"}}
	want := "h2"
	if e.Transport == "h1" {
		offers, want = [][]string{{"http/1.1"}, nil}, "http/1.1"
	}
	e.Put("a")
	for _, offer := range offers {
		c := e.Connect(offer...)
		got := c.(*tls.Conn).ConnectionState().NegotiatedProtocol
		if got != want && (offer != nil || got != "") {
			e.Fatalf("offered %q: got %q, want %q", offer, got, want)
		}
		a := e.RequestOn(c, "GET", "?watch=1", nil)
		a.WantStatus(http.StatusOK)
		if got := string(a.ReadFirst()); got != harness.JSONEventPrefix {
			e.Errorf("offered %q: got %q, want an event", offer, got)
		}
	}
}

func h2cPriorKnowledge(e *harness.Env) {
	a := e.WatchRaw("") // a preface in clear text is how it begins
	a.WantStatus(http.StatusOK)
	e.Put("a")
	if got := string(a.ReadFirst()); got != harness.JSONEventPrefix {
		e.Errorf("got %q, want an event", got)
	}
}

func h2cUpgradeIgnored(e *harness.Env) {
	settings := harness.Token68([]byte{0, 3, 0, 0, 0, 100})
	a := e.WatchRaw("", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", settings)
	if h := a.WantStatus(http.StatusOK); h.Get("Transfer-Encoding") != "chunked" || h.Get("Upgrade") != "" {
		e.Errorf("got headers %v, want a watch over HTTP/1.1", h)
	}
	e.Put("a")
	if got := string(a.ReadFirst()); got != harness.JSONEventPrefix {
		e.Errorf("got %q, want an event", got)
	}
}

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
			e.Errorf("asked for version %q: got Sec-WebSocket-Version %q, want 13", version, got)
		}
	}
}

func wsNoKey(e *harness.Env) {
	e.WatchRaw("", "Sec-WebSocket-Key", "").WantHandshakeRefused(http.StatusBadRequest, "BadRequest")
}

func wsBadKey(e *harness.Env) {
	for _, header := range [][]string{
		{"Sec-WebSocket-Key", "x"},
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j"},                                             // 15 bytes
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZTE="},                                         // 17 bytes
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ"},                                           // no padding
		{"Sec-WebSocket-Key", "this is no base64 at all"},                                         // as long as a key
		{"Sec-WebSocket-Key", harness.SampleKey, "Sec-WebSocket-Key", "AQIDBAUGBwgJCgsMDQ4PEA=="}, // two
	} {
		e.WatchRaw("", header...).WantHandshakeRefused(http.StatusBadRequest, "BadRequest")
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
	for _, offer := range []string{"base64.binary.k8s.io", "chat, superchat", "base64url.bearer.authorization.k8s.io.dG9rZW4"} {
		h := e.WatchRaw("", "Sec-WebSocket-Protocol", offer).WantStatus(http.StatusSwitchingProtocols)
		if got := h.Values("Sec-WebSocket-Protocol"); got != nil {
			e.Errorf("offered %s: got %q, want no subprotocol", offer, got)
		}
	}
}

func wsSubprotocolChosen(e *harness.Env) {
	offer := "chat, " + websocket.SubprotocolJSON
	a := e.WatchRaw("", "Sec-WebSocket-Protocol", offer)
	if !e.Can(harness.InProcess) && (a.Status != http.StatusSwitchingProtocols || a.Headers.Get("Sec-WebSocket-Protocol") == "") {
		e.Skipf("the server does not speak %s", websocket.SubprotocolJSON)
	}
	if got := a.WantStatus(http.StatusSwitchingProtocols).Values("Sec-WebSocket-Protocol"); !slices.Equal(got, []string{websocket.SubprotocolJSON}) {
		e.Errorf("offered %s: got %q, want ours", offer, got)
	}
	s := e.DialRequest("", transport.Request{Header: http.Header{"Sec-Websocket-Protocol": {offer}}})
	if got := s.Header().Get("Sec-WebSocket-Protocol"); got != websocket.SubprotocolJSON {
		e.Errorf("the client that offered %s got %q, want ours", offer, got)
	}
	e.Put("a")
	s.Want("ADDED a")
}

func errorBeforeUpgrade(e *harness.Env) {
	e.WatchRaw("labelSelector=!!").WantRefused(http.StatusBadRequest, "BadRequest")
	e.WatchRaw("sendInitialEvents=true").WantRefused(http.StatusUnprocessableEntity, "Invalid")
	e.WatchRaw("", "Accept", "image/png").WantRefused(http.StatusNotAcceptable, "NotAcceptable")
}

func acceptDefault(e *harness.Env) {
	e.Put("a")
	for _, accept := range []string{"", "*/*", "application/*", "application/json, */*", "text/html, */*;q=0.1"} {
		a := e.WatchRaw("", "Accept", accept)
		// That a WebSocket is opened with a type is our own affair.
		if got := a.WantAccepted().Get("Content-Type"); got != "application/json" && (a.Transport != "ws" || e.Can(harness.InProcess)) {
			e.Errorf("Accept %q: got Content-Type %q, want application/json", accept, got)
		}
		if got := string(a.ReadFirst()); !strings.HasPrefix(got, harness.JSONEventPrefix) {
			e.Errorf("Accept %q: got %q, want JSON", accept, got)
		}
	}
}

func accept406(e *harness.Env) {
	for _, accept := range []string{"image/png", "application/xml, text/html;q=0.9", "application/json;as=Sculpture"} {
		s := e.WatchRaw("", "Accept", accept).WantRefused(http.StatusNotAcceptable, "NotAcceptable")
		if !strings.Contains(s.Message, "application/json") {
			e.Errorf("Accept %s: got message %q, want one that says what there is", accept, s.Message)
		}
	}
}

func acceptQ(e *harness.Env) {
	e.WatchRawIn("application/cbor-seq", "") // skips where JSON is all there is
	for accept, want := range map[string]string{
		"application/json;q=0.1, application/cbor-seq":               "application/cbor-seq",
		"application/json;q=0.5, application/cbor-seq;q=0.501":       "application/cbor-seq",
		"application/cbor-seq;q=0.5, application/json;q=0.9":         "application/json",
		"image/png, application/cbor-seq;q=0.001":                    "application/cbor-seq",
		"application/*;q=0.2, application/cbor-seq;q=0.1, */*;q=0.9": "application/json",
	} {
		if e.Transport != "ws" && strings.Contains(accept, "*/*") {
			want = "text/event-stream" // the only one that is not application/…
		}
		if got := e.WatchRaw("", "Accept", accept).WantAccepted().Get("Content-Type"); got != want {
			e.Errorf("Accept %s: got Content-Type %q, want %s", accept, got, want)
		}
	}
}

func acceptQ0(e *harness.Env) {
	for _, accept := range []string{
		"application/json;q=0, */*", "*/*, application/json;q=0.000", "application/*;q=0.3, application/json;q=0",
	} {
		got := e.WatchRaw("", "Accept", accept).WantAccepted().Get("Content-Type")
		if _, known := framing.Default().Lookup(got); got == "application/json" || !known {
			e.Errorf("Accept %s: got Content-Type %q, want a framing that is not JSON", accept, got)
		}
	}
	e.WatchRaw("", "Accept", "application/json;q=0").WantRefused(http.StatusNotAcceptable, "NotAcceptable")
	e.ListRaw("", "Accept", "application/json;q=0, */*").WantRefused(http.StatusNotAcceptable, "NotAcceptable")
}

func method405(e *harness.Env) {
	paths := []string{"", e.ResourcePath(""), e.ResourcePath(harness.DefaultNamespace)}
	for _, path := range paths {
		for _, method := range []string{"HEAD", "PUT", "PATCH", "DELETE"} {
			if method == "DELETE" && !e.Can(harness.InProcess) {
				continue // somebody else's server may do it
			}
			a := e.RequestRaw(method, path+"?watch=1")
			if method == "HEAD" {
				a.WantStatus(http.StatusMethodNotAllowed)
			} else {
				a.WantRefused(http.StatusMethodNotAllowed, "MethodNotAllowed")
			}
			if allow := a.Headers.Get("Allow"); !strings.Contains(allow, "GET") {
				e.Errorf("%s %s: got Allow %q, want it to name GET", method, path, allow)
			}
		}
	}
}

func watchValues(e *harness.Env) {
	for _, value := range []string{"=1", "=true", "=True", "=yes", "=", ""} {
		e.RequestRaw("GET", "?watch"+value).WantAccepted()
	}
	for _, value := range []string{"=0", "=false", "=False"} {
		a := e.RequestRaw("GET", "?watch"+value)
		a.WantStatus(http.StatusOK)
		var list struct{ Kind string }
		if body := a.ReadAll(); json.Unmarshal(body, &list) != nil || list.Kind != e.Kind+"List" {
			e.Errorf("watch%s: got %q, want a list", value, body)
		}
	}
	for _, value := range []string{"=maybe", "=2", "=TRUE%20", "=on", "=%00"} {
		s := e.RequestRaw("GET", "?watch"+value).WantRefused(http.StatusBadRequest, "BadRequest")
		if !strings.Contains(s.Message, "watch") {
			e.Errorf("watch%s: got message %s, want one that names the parameter", value, strconv.Quote(s.Message))
		}
	}
}
