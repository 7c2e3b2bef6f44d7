package handshake

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
)

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
		if want != harness.JSONMediaType && a.Status == http.StatusNotAcceptable && !e.Supports(harness.InProcess) {
			continue // only JSON is mandatory
		}
		if got := a.WantStatus(http.StatusOK).Values("Content-Type"); !slices.Equal(got, []string{want}) {
			e.Errorf("Accept %s: got Content-Type %q, want %s", accept, got, want)
		}
	}
}

func acceptDefault(e *harness.Env) {
	wantJSON(e, "", "*/*", "application/json, */*", "text/html, */*;q=0.1")
}

func acceptRange(e *harness.Env) { wantJSON(e, "application/*", "text/html, application/*") }

// wantJSON requests a watch with each of the Accept headers, and requires JSON.
func wantJSON(e *harness.Env, accepts ...string) {
	e.Put("a")
	for _, accept := range accepts {
		a := e.WatchRaw("", "Accept", accept)
		// Only this module's server sets Content-Type in the response that opens a WebSocket.
		if got := a.WantAccepted().Get("Content-Type"); got != "application/json" &&
			(a.Transport != "ws" || e.Supports(harness.InProcess)) {
			e.Errorf("Accept %q: got Content-Type %q, want application/json", accept, got)
		}
		a.WantAdded()
	}
}

func acceptUnknown(e *harness.Env) {
	e.Put("a")
	for _, accept := range []string{"application/json;unknown=1", "application/json;drop=metadata.managedFields"} {
		a := e.WatchRaw("", "Accept", accept)
		a.WantAccepted()
		a.WantAdded()
		e.ListRaw("", "Accept", accept).WantStatus(http.StatusOK)
	}
}

func accept406(e *harness.Env) {
	for _, accept := range []string{"image/png", "application/xml, text/html;q=0.9", "application/json;as=Sculpture"} {
		s := e.WatchRaw("", "Accept", accept).WantRefused(http.StatusNotAcceptable, "NotAcceptable")
		if !strings.Contains(s.Message, "application/json") {
			e.Errorf("Accept %s: got message %q, want one that lists the available media types", accept, s.Message)
		}
	}
}

func acceptQ(e *harness.Env) {
	e.WatchRawIn("application/cbor-seq", "") // skips the case if the server does not offer CBOR
	for accept, want := range map[string]string{
		"application/json;q=0.1, application/cbor-seq":               "application/cbor-seq",
		"application/json;q=0.5, application/cbor-seq;q=0.501":       "application/cbor-seq",
		"application/cbor-seq;q=0.5, application/json;q=0.9":         "application/json",
		"image/png, application/cbor-seq;q=0.001":                    "application/cbor-seq",
		"application/*;q=0.2, application/cbor-seq;q=0.1, */*;q=0.9": "application/json",
	} {
		if e.Transport != "ws" && strings.Contains(accept, "*/*") {
			want = "text/event-stream" // the only media type outside application/*
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
		if _, ok := framing.Default().Lookup(got); got == "application/json" || !ok {
			e.Errorf("Accept %s: got Content-Type %q, want a framing that is not JSON", accept, got)
		}
	}
	e.WatchRaw("", "Accept", "application/json;q=0").WantRefused(http.StatusNotAcceptable, "NotAcceptable")
	// A list may be available in formats other than JSON.
	list := e.ListRaw("", "Accept", "application/json;q=0, */*")
	if list.Status == http.StatusNotAcceptable {
		list.WantRefused(http.StatusNotAcceptable, "NotAcceptable")
	} else if got := list.WantStatus(http.StatusOK).Get("Content-Type"); got == "application/json" {
		e.Errorf("a list without JSON: got Content-Type %q, want another one or 406", got)
	}
}
