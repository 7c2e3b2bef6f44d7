package cases

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
)

func h1Chunked(e *env) {
	a := e.watch("")
	h := a.wantStatus(http.StatusOK)
	if got := h.Values("Transfer-Encoding"); !slices.Equal(got, []string{"chunked"}) {
		e.Errorf("got Transfer-Encoding %q, want chunked, once", got)
	}
	if got := h.Values("Content-Length"); got != nil {
		e.Errorf("got Content-Length %q, want none", got)
	}
	e.put("a")
	if got := string(a.first()); got != jsonEvent {
		e.Errorf("the body, decoded from its chunks, begins %q, want an event", got)
	}
}

func h2Headers(e *env) {
	h := e.watch("").wantStatus(http.StatusOK)
	for _, name := range []string{"Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade"} {
		if got := h.Values(name); got != nil {
			e.Errorf("got %s: %q, want none", name, got)
		}
	}
}

func headersBeforeEvents(e *env) {
	a := e.watch("") // returns when the headers are there
	a.wantStatus(http.StatusOK)
	e.put("a")
	if got := string(a.first()); got != jsonEvent {
		e.Errorf("got %q, want the event of a write that came after the headers", got)
	}
}

func contentType(e *env) {
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
		a := e.watch("", "Accept", accept)
		if want != jsonType && a.status == http.StatusNotAcceptable && !e.can(InProcess) {
			continue // a server has JSON, and what else it likes
		}
		if got := a.wantStatus(http.StatusOK).Values("Content-Type"); !slices.Equal(got, []string{want}) {
			e.Errorf("Accept %s: got Content-Type %q, want %s", accept, got, want)
		}
	}
}

func alpn(e *env) {
	offers := [][]string{{"h2", "http/1.1"}, {"http/1.1", "h2"}, {"h2"}}
	want := "h2"
	if e.on == "h1" {
		offers, want = [][]string{{"http/1.1"}, nil}, "http/1.1"
	}
	e.put("a")
	for _, offer := range offers {
		c := e.connect(offer...)
		got := c.(*tls.Conn).ConnectionState().NegotiatedProtocol
		if got != want && (offer != nil || got != "") {
			e.Fatalf("offered %q: got %q, want %q", offer, got, want)
		}
		a := e.askOn(c, "GET", "?watch=1", nil)
		a.wantStatus(http.StatusOK)
		if got := string(a.first()); got != jsonEvent {
			e.Errorf("offered %q: got %q, want an event", offer, got)
		}
	}
}

func h2cPriorKnowledge(e *env) {
	a := e.watch("") // a preface in clear text is how it begins
	a.wantStatus(http.StatusOK)
	e.put("a")
	if got := string(a.first()); got != jsonEvent {
		e.Errorf("got %q, want an event", got)
	}
}

func h2cUpgradeIgnored(e *env) {
	settings := token68([]byte{0, 3, 0, 0, 0, 100})
	a := e.watch("", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", settings)
	if h := a.wantStatus(http.StatusOK); h.Get("Transfer-Encoding") != "chunked" || h.Get("Upgrade") != "" {
		e.Errorf("got headers %v, want a watch over HTTP/1.1", h)
	}
	e.put("a")
	if got := string(a.first()); got != jsonEvent {
		e.Errorf("got %q, want an event", got)
	}
}

func wsAccept(e *env) {
	h := e.watch("").wantStatus(http.StatusSwitchingProtocols)
	if got := h.Values("Sec-WebSocket-Accept"); !slices.Equal(got, []string{sampleAccept}) {
		e.Errorf("got Sec-WebSocket-Accept %q, want %s", got, sampleAccept)
	}
	if !strings.EqualFold(h.Get("Upgrade"), "websocket") || !strings.EqualFold(h.Get("Connection"), "upgrade") {
		e.Errorf("got headers %v, want Upgrade: websocket and Connection: Upgrade", h)
	}
}

func wsConnectionList(e *env) {
	for _, header := range [][]string{
		{"Connection", "keep-alive, Upgrade"},
		{"connection", "KEEP-ALIVE,uPgRaDe", "UPGRADE", "WebSocket"},
		{"Connection", "keep-alive", "Connection", "upgrade"},
		{"Connection", "upgrade ,", "Upgrade", "h2c, websocket"},
	} {
		h := e.watch("", header...).wantStatus(http.StatusSwitchingProtocols)
		if h.Get("Sec-WebSocket-Accept") != sampleAccept {
			e.Errorf("%q: got headers %v, want an upgrade", header, h)
		}
	}
}

func wsVersion(e *env) {
	for _, version := range []string{"8", "12", "14", "130", "x", ""} {
		a := e.watch("", "Sec-WebSocket-Version", version)
		a.turnedDown(http.StatusUpgradeRequired, "UpgradeRequired")
		if got := a.header.Values("Sec-WebSocket-Version"); !slices.Equal(got, []string{"13"}) {
			e.Errorf("asked for version %q: got Sec-WebSocket-Version %q, want 13", version, got)
		}
	}
}

func wsNoKey(e *env) {
	e.watch("", "Sec-WebSocket-Key", "").turnedDown(http.StatusBadRequest, "BadRequest")
}

// turnedDown is refused for a handshake that is none. RFC 6455 asks no more of a server than a code "such as" the one we have
// (sections 4.2.2 and 4.4).
func (a *answer) turnedDown(code int, reason string) {
	a.Helper()
	if a.can(InProcess) {
		a.refused(code, reason)
	} else if a.status/100 != 4 {
		a.Errorf("%sgot status %d, want 4xx", a.asked, a.status)
	}
}

func wsBadKey(e *env) {
	for _, header := range [][]string{
		{"Sec-WebSocket-Key", "x"},
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j"},                                     // 15 bytes
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZTE="},                                 // 17 bytes
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ"},                                   // no padding
		{"Sec-WebSocket-Key", "this is no base64 at all"},                                 // as long as a key
		{"Sec-WebSocket-Key", sampleKey, "Sec-WebSocket-Key", "AQIDBAUGBwgJCgsMDQ4PEA=="}, // two
	} {
		e.watch("", header...).turnedDown(http.StatusBadRequest, "BadRequest")
	}
}

func wsNotGet(e *env) {
	for _, method := range []string{"POST", "PUT", "HEAD", "OPTIONS"} {
		a := e.ask(method, "?watch=1", "Content-Length", "0")
		if a.status < 400 || a.header.Get("Sec-WebSocket-Accept") != "" {
			e.Errorf("%s: got status %d and headers %v, want an error", method, a.status, a.header)
		}
	}
}

func wsSubprotocolUnknown(e *env) {
	for _, offer := range []string{"base64.binary.k8s.io", "chat, superchat", "base64url.bearer.authorization.k8s.io.dG9rZW4"} {
		h := e.watch("", "Sec-WebSocket-Protocol", offer).wantStatus(http.StatusSwitchingProtocols)
		if got := h.Values("Sec-WebSocket-Protocol"); got != nil {
			e.Errorf("offered %s: got %q, want no subprotocol", offer, got)
		}
	}
}

func wsSubprotocolChosen(e *env) {
	offer := "chat, " + websocket.SubprotocolJSON
	a := e.watch("", "Sec-WebSocket-Protocol", offer)
	if !e.can(InProcess) && (a.status != http.StatusSwitchingProtocols || a.header.Get("Sec-WebSocket-Protocol") == "") {
		e.Skipf("the server does not speak %s", websocket.SubprotocolJSON)
	}
	if got := a.wantStatus(http.StatusSwitchingProtocols).Values("Sec-WebSocket-Protocol"); !slices.Equal(got, []string{websocket.SubprotocolJSON}) {
		e.Errorf("offered %s: got %q, want ours", offer, got)
	}
	s := e.dialAs("", transport.Request{Header: http.Header{"Sec-Websocket-Protocol": {offer}}})
	if got := s.Header().Get("Sec-WebSocket-Protocol"); got != websocket.SubprotocolJSON {
		e.Errorf("the client that offered %s got %q, want ours", offer, got)
	}
	e.put("a")
	s.want("ADDED a")
}

func errorBeforeUpgrade(e *env) {
	e.watch("labelSelector=!!").refused(http.StatusBadRequest, "BadRequest")
	e.watch("sendInitialEvents=true").refused(http.StatusUnprocessableEntity, "Invalid")
	e.watch("", "Accept", "image/png").refused(http.StatusNotAcceptable, "NotAcceptable")
}

func acceptDefault(e *env) {
	e.put("a")
	for _, accept := range []string{"", "*/*", "application/*", "application/json, */*", "text/html, */*;q=0.1"} {
		a := e.watch("", "Accept", accept)
		// That a WebSocket is opened with a type is our own affair.
		if got := a.accepted().Get("Content-Type"); got != "application/json" && (a.on != "ws" || e.can(InProcess)) {
			e.Errorf("Accept %q: got Content-Type %q, want application/json", accept, got)
		}
		if got := string(a.first()); !strings.HasPrefix(got, jsonEvent) {
			e.Errorf("Accept %q: got %q, want JSON", accept, got)
		}
	}
}

func accept406(e *env) {
	for _, accept := range []string{"image/png", "application/xml, text/html;q=0.9", "application/json;as=Sculpture"} {
		s := e.watch("", "Accept", accept).refused(http.StatusNotAcceptable, "NotAcceptable")
		if !strings.Contains(s.Message, "application/json") {
			e.Errorf("Accept %s: got message %q, want one that says what there is", accept, s.Message)
		}
	}
}

func acceptQ(e *env) {
	e.watchIn("application/cbor-seq", "") // skips where JSON is all there is
	for accept, want := range map[string]string{
		"application/json;q=0.1, application/cbor-seq":               "application/cbor-seq",
		"application/json;q=0.5, application/cbor-seq;q=0.501":       "application/cbor-seq",
		"application/cbor-seq;q=0.5, application/json;q=0.9":         "application/json",
		"image/png, application/cbor-seq;q=0.001":                    "application/cbor-seq",
		"application/*;q=0.2, application/cbor-seq;q=0.1, */*;q=0.9": "application/json",
	} {
		if e.on != "ws" && strings.Contains(accept, "*/*") {
			want = "text/event-stream" // the only one that is not application/…
		}
		if got := e.watch("", "Accept", accept).accepted().Get("Content-Type"); got != want {
			e.Errorf("Accept %s: got Content-Type %q, want %s", accept, got, want)
		}
	}
}

func acceptQ0(e *env) {
	for _, accept := range []string{
		"application/json;q=0, */*", "*/*, application/json;q=0.000", "application/*;q=0.3, application/json;q=0",
	} {
		got := e.watch("", "Accept", accept).accepted().Get("Content-Type")
		if _, known := framing.Default().Lookup(got); got == "application/json" || !known {
			e.Errorf("Accept %s: got Content-Type %q, want a framing that is not JSON", accept, got)
		}
	}
	e.watch("", "Accept", "application/json;q=0").refused(http.StatusNotAcceptable, "NotAcceptable")
	e.list("", "Accept", "application/json;q=0, */*").refused(http.StatusNotAcceptable, "NotAcceptable")
}

func method405(e *env) {
	paths := []string{"", e.path(""), e.path(namespace)}
	for _, path := range paths {
		for _, method := range []string{"HEAD", "PUT", "PATCH", "DELETE"} {
			if method == "DELETE" && !e.can(InProcess) {
				continue // somebody else's server may do it
			}
			a := e.ask(method, path+"?watch=1")
			if method == "HEAD" {
				a.wantStatus(http.StatusMethodNotAllowed)
			} else {
				a.refused(http.StatusMethodNotAllowed, "MethodNotAllowed")
			}
			if allow := a.header.Get("Allow"); !strings.Contains(allow, "GET") {
				e.Errorf("%s %s: got Allow %q, want it to name GET", method, path, allow)
			}
		}
	}
}

func watchValues(e *env) {
	for _, value := range []string{"=1", "=true", "=True", "=yes", "=", ""} {
		e.ask("GET", "?watch"+value).accepted()
	}
	for _, value := range []string{"=0", "=false", "=False"} {
		a := e.ask("GET", "?watch"+value)
		a.wantStatus(http.StatusOK)
		var list struct{ Kind string }
		if body := a.all(); json.Unmarshal(body, &list) != nil || list.Kind != e.Kind+"List" {
			e.Errorf("watch%s: got %q, want a list", value, body)
		}
	}
	for _, value := range []string{"=maybe", "=2", "=TRUE%20", "=on", "=%00"} {
		s := e.ask("GET", "?watch"+value).refused(http.StatusBadRequest, "BadRequest")
		if !strings.Contains(s.Message, "watch") {
			e.Errorf("watch%s: got message %s, want one that names the parameter", value, strconv.Quote(s.Message))
		}
	}
}
