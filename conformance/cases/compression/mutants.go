package compression

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// Mutants break the cases of compression.
var Mutants = []mutation.Mutant{
	{Name: "keeps-events-in-its-compressor", Breaks: []string{"comp/gzip", "comp/first-event-latency", "comp/breach-opt-out"}, Defect: reference.Interceptors{Handler: keeping}},
	{Name: "says-gzip-for-zstd", Breaks: []string{"comp/zstd"}, Defect: reference.Interceptors{Handler: mutation.OnRequest(func(r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "zstd") {
			r.Header.Set("Accept-Encoding", "gzip")
		}
	})}},
	{Name: "compresses-for-everybody", Breaks: []string{"comp/not-asked"}, Defect: reference.Interceptors{Handler: mutation.WithHeader("Accept-Encoding", "gzip")}},
	{Name: "takes-no-for-yes", Breaks: []string{"comp/not-asked"}, Defect: reference.Interceptors{Handler: mutation.OnRequest(func(r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Accept-Encoding"), "gzip;q=0") {
			r.Header.Set("Accept-Encoding", "gzip")
		}
	})}},
	{Name: "client-stops-after-a-member", Breaks: []string{"comp/multi-member"}, Defect: reference.Interceptors{
		TransportClient: mutation.Asks(nil, func(r transport.Receiver) transport.Receiver { return &sated{Receiver: r} }),
	}},
	{Name: "deflates-for-everybody", Breaks: []string{"comp/ws-deflate", "comp/ws-declined"}, Defect: reference.Interceptors{Handler: mutation.WithHeader("Sec-WebSocket-Extensions", "permessage-deflate")}},
	{Name: "wants-to-keep-context", Breaks: []string{"comp/ws-no-context"}, Defect: reference.Interceptors{Network: mutation.OnConns(func(c net.Conn) net.Conn {
		return &mutation.AlteredConn{Conn: c, OnRead: mutation.Replace("server_no_context", "client_no_context")}
	})}},
	{Name: "makes-bytes-for-each-watcher", Breaks: []string{"comp/shared-once"}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		return []listwatch.Event{mutation.WithData(e, e.Object.Data)}
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
