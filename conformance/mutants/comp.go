package mutants

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// compMutants break the cases of compression.
var compMutants = []Mutant{
	{"keeps-events-in-its-compressor", []string{"comp/gzip", "comp/first-event-latency", "comp/breach-opt-out"}, cases.Interceptors{Handler: keeping}},
	{"says-gzip-for-zstd", []string{"comp/zstd"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "zstd") {
			r.Header.Set("Accept-Encoding", "gzip")
		}
	})}},
	{"compresses-for-everybody", []string{"comp/not-asked"}, cases.Interceptors{Handler: withHeader("Accept-Encoding", "gzip")}},
	{"takes-no-for-yes", []string{"comp/not-asked"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Accept-Encoding"), "gzip;q=0") {
			r.Header.Set("Accept-Encoding", "gzip")
		}
	})}},
	{"client-stops-after-a-member", []string{"comp/multi-member"}, cases.Interceptors{
		TransportClient: asks(nil, func(r transport.Receiver) transport.Receiver { return &sated{Receiver: r} }),
	}},
	{"deflates-for-everybody", []string{"comp/ws-deflate", "comp/ws-declined"}, cases.Interceptors{Handler: withHeader("Sec-WebSocket-Extensions", "permessage-deflate")}},
	{"wants-to-keep-context", []string{"comp/ws-no-context"}, cases.Interceptors{Network: onConns(func(c net.Conn) net.Conn {
		return &alteredConn{Conn: c, onRead: replace("server_no_context", "client_no_context")}
	})}},
	{"makes-bytes-for-each-watcher", []string{"comp/shared-once"}, cases.Interceptors{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		return []listwatch.Event{withData(e, e.Object.Data)}
	})}},
}

// keeping returns a handler that compresses for who asks for gzip, whatever the server's own mind is, and never empties its compressor.
func keeping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Vary", "Accept-Encoding")
		next.ServeHTTP(&keeper{w, gzip.NewWriter(w)}, r)
	})
}

type keeper struct {
	http.ResponseWriter
	gzip *gzip.Writer
}

// Write writes to the compressor.
func (k *keeper) Write(p []byte) (int, error) { return k.gzip.Write(p) }

// FlushError sends what the compressor has given away.
func (k *keeper) FlushError() error { return http.NewResponseController(k.ResponseWriter).Flush() }

// sated is a receiver that has enough after one event.
type sated struct {
	transport.Receiver
	full bool
}

// Receive returns the first event.
func (s *sated) Receive() (framing.WatchEvent, error) {
	if s.full {
		return framing.WatchEvent{}, io.EOF
	}
	s.full = true
	return s.Receiver.Receive()
}
