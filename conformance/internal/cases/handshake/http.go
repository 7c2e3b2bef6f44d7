package handshake

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
)

func h1Chunked(e *harness.Env) {
	a := e.WatchRaw("")
	h := a.WantStatus(http.StatusOK)
	if got := h.Values("Transfer-Encoding"); !slices.Equal(got, []string{"chunked"}) {
		e.Errorf("got Transfer-Encoding %q, want chunked only", got)
	}
	if got := h.Values("Content-Length"); got != nil {
		e.Errorf("got Content-Length %q, want none", got)
	}
	e.Put("a")
	a.WantAdded()
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
	a := e.WatchRaw("") // returns when it has received the headers
	a.WantStatus(http.StatusOK)
	e.Put("a")
	a.WantAdded()
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
			e.Fatalf("offered protocols %q: got %q, want %q", offer, got, want)
		}
		a := e.RequestOn(c, "GET", "?watch=1", nil)
		a.WantStatus(http.StatusOK)
		a.WantAdded()
	}
}

func h2cPriorKnowledge(e *harness.Env) {
	a := e.WatchRaw("") // starts with the connection preface, without TLS
	a.WantStatus(http.StatusOK)
	e.Put("a")
	a.WantAdded()
}

func h2cUpgradeIgnored(e *harness.Env) {
	settings := harness.Base64URL([]byte{0, 3, 0, 0, 0, 100})
	a := e.WatchRaw("", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", settings)
	if h := a.WantStatus(http.StatusOK); h.Get("Transfer-Encoding") != "chunked" || h.Get("Upgrade") != "" {
		e.Errorf("got headers %v, want a watch over HTTP/1.1", h)
	}
	e.Put("a")
	a.WantAdded()
}

func method405(e *harness.Env) {
	paths := []string{"", e.ResourcePath(""), e.ResourcePath(harness.DefaultNamespace)}
	for _, path := range paths {
		for _, method := range []string{"HEAD", "PUT", "PATCH", "DELETE"} {
			if method == "DELETE" && !e.Supports(harness.InProcess) {
				continue // another implementation may really delete the collection
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
		if e.OpensOverHTTP2() {
			a.WantStatus(http.StatusNotImplemented) // 200 would open the WebSocket
			continue
		}
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
