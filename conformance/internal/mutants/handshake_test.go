package mutants

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// handshakeMutants are servers and clients with one defect each. The cases about the handshake of a
// watch, and about content negotiation, must detect the defects.
var handshakeMutants = []mutant{
	{
		Name: "chunked-with-content-length", Breaks: []string{"handshake/h1-chunked"},
		Defect: defect{
			Handler: onHeader(func(h http.Header) { h.Set("Content-Length", "1000") }),
		},
	},
	{
		Name: "sends-headers-with-the-first-event", Breaks: []string{"handshake/headers-before-events"},
		Defect: defect{
			Source: func(s listwatch.Source) listwatch.Source { return &hesitantSource{s} },
		},
	},
	{
		Name: "json-has-a-charset", Breaks: []string{"handshake/content-type"},
		Defect: defect{
			Handler: onHeader(func(h http.Header) { h.Set("Content-Type", h.Get("Content-Type")+"; charset=utf-8") }),
		},
	},
	{
		Name: "sends-keep-alive-over-http2", Breaks: []string{"handshake/h2-headers"},
		Defect: defect{
			Handler: onHeader(func(h http.Header) { h.Set("Keep-Alive", "timeout=5") }),
		},
	},
	{
		Name:   "refuses-http2",
		Breaks: []string{"handshake/alpn", "handshake/h2c-prior-knowledge", "handshake/h2-headers"},
		Defect: defect{Handler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor == 2 {
					w.WriteHeader(http.StatusHTTPVersionNotSupported)
					return
				}
				next.ServeHTTP(w, r)
			})
		}},
	},
	{
		Name: "refuses-websocket-over-http2", Breaks: []string{"handshake/ws-over-h2"},
		Defect: defect{Handler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor == 2 && r.Header.Get("Upgrade") != "" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				next.ServeHTTP(w, r)
			})
		}},
	},
	{
		Name: "accepts-every-upgrade",
		Breaks: []string{
			"handshake/h2c-upgrade-ignored", "handshake/ws-accept", "handshake/ws-connection-list",
			"handshake/ws-version", "handshake/ws-no-key", "handshake/ws-bad-key", "handshake/ws-not-get",
			"handshake/error-before-upgrade", "handshake/ws-subprotocol-unknown",
		},
		Defect: defect{Handler: acceptEveryUpgrade(func(r *http.Request) string {
			return "Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: " + r.Header.Get("Sec-WebSocket-Protocol") +
				"\r\n"
		})},
	},
	{
		Name: "ignores-subprotocols", Breaks: []string{"handshake/ws-subprotocol-chosen"},
		Defect: defect{
			Handler: onRequest(func(r *http.Request) { r.Header.Del("Sec-Websocket-Protocol") }),
		},
	},
	{
		Name: "always-cbor", Breaks: []string{"handshake/accept-default"},
		Defect: defect{Handler: withHeader("Accept", "application/cbor-seq")},
	},
	{
		Name: "refuses-ranges", Breaks: []string{"handshake/accept-range"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if strings.HasSuffix(r.Header.Get("Accept"), "application/*") {
				r.Header.Set("Accept", "image/png")
			}
		})},
	},
	{
		Name: "refuses-unknown-parameters", Breaks: []string{"handshake/accept-unknown"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if accept := r.Header.Get("Accept"); strings.Contains(accept, "drop=") ||
				strings.Contains(accept, "unknown=") {
				r.Header.Set("Accept", "image/png")
			}
		})},
	},
	{
		Name: "ignores-accept", Breaks: []string{"handshake/accept-406", "handshake/accept-q", "handshake/accept-q0"},
		Defect: defect{Handler: withHeader("Accept", "*/*")},
	},
	{
		Name: "accepts-any-method", Breaks: []string{"handshake/method-405"},
		Defect: defect{Handler: onRequest(func(r *http.Request) { r.Method = http.MethodGet })},
	},
	{
		Name: "accepts-any-watch-value", Breaks: []string{"handshake/watch-values"},
		Defect: defect{Handler: onQuery(func(q url.Values) {
			if q.Has("watch") {
				q.Set("watch", "1")
			}
		})},
	},
	{
		Name: "client-has-one-transport", Breaks: []string{"handshake/fallback"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			r.Transports = r.Transports[:1]
			return r
		}},
	},
}

// hesitantSource is a source whose Watch returns only after the first event has arrived.
type hesitantSource struct{ listwatch.Source }

func (h *hesitantSource) Describe() listwatch.Description { return listwatch.Describe(h.Source) }

func (h *hesitantSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := h.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	var one [1]listwatch.Event
	if _, err := w.Next(ctx, one[:]); err != nil {
		return nil, err
	}
	unchanged := func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e} }
	return &changedWatcher{Watcher: w, Change: unchanged, Pending: one[:]}, nil
}
