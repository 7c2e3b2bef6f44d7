package mutants

import (
	"context"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
)

// handshakeMutants break the cases of handshake and negotiation.
var handshakeMutants = []Mutant{
	{"chunked-says-its-length", []string{"handshake/h1-chunked"}, cases.Interceptors{
		Handler: onHeader(func(h http.Header) { h.Set("Content-Length", "1000") }),
	}},
	{"waits-for-an-event-before-it-answers", []string{"handshake/headers-before-events"}, cases.Interceptors{
		Source: func(s listwatch.Source) listwatch.Source { return &hesitant{s} },
	}},
	{"json-has-a-charset", []string{"handshake/content-type"}, cases.Interceptors{
		Handler: onHeader(func(h http.Header) { h.Set("Content-Type", h.Get("Content-Type")+"; charset=utf-8") }),
	}},
	{"names-what-http2-has-not", []string{"handshake/h2-headers"}, cases.Interceptors{
		Handler: onHeader(func(h http.Header) { h.Set("Keep-Alive", "timeout=5") }),
	}},
	{"refuses-http2", []string{"handshake/alpn", "handshake/h2c-prior-knowledge", "handshake/h2-headers"}, cases.Interceptors{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 2 {
				w.WriteHeader(http.StatusHTTPVersionNotSupported)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}},
	{"upgrades-whoever-asks", []string{
		"handshake/h2c-upgrade-ignored", "handshake/ws-accept", "handshake/ws-connection-list", "handshake/ws-version",
		"handshake/ws-no-key", "handshake/ws-bad-key", "handshake/ws-not-get", "handshake/error-before-upgrade", "handshake/ws-subprotocol-unknown",
	}, cases.Interceptors{Handler: upgrading(func(r *http.Request) string {
		return "Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: " + r.Header.Get("Sec-WebSocket-Protocol") + "\r\n"
	})}},
	{"knows-no-subprotocol", []string{"handshake/ws-subprotocol-chosen"}, cases.Interceptors{
		Handler: onRequest(func(r *http.Request) { r.Header.Del("Sec-Websocket-Protocol") }),
	}},
	{"always-cbor", []string{"handshake/accept-default"}, cases.Interceptors{Handler: withHeader("Accept", "application/cbor-seq")}},
	{"ignores-accept", []string{"handshake/accept-406", "handshake/accept-q", "handshake/accept-q0"}, cases.Interceptors{Handler: withHeader("Accept", "*/*")}},
	{"any-method-watches", []string{"handshake/method-405"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) { r.Method = http.MethodGet })}},
	{"any-value-watches", []string{"handshake/watch-values"}, cases.Interceptors{Handler: onQuery(func(q url.Values) {
		if q.Has("watch") {
			q.Set("watch", "1")
		}
	})}},
	{"client-has-one-transport", []string{"handshake/fallback"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		r.Transports = r.Transports[:1]
		return r
	}}},
}

// hesitant is a source that opens no watch before there is an event.
type hesitant struct{ listwatch.Source }

// Describe is that of the source below.
func (h *hesitant) Describe() listwatch.Description { return listwatch.Describe(h.Source) }

// Watch waits for the first event.
func (h *hesitant) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := h.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	var one [1]listwatch.Event
	if _, err := w.Next(ctx, one[:]); err != nil {
		return nil, err
	}
	same := func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e} }
	return &changedWatcher{Watcher: w, change: same, pending: one[:]}, nil
}
