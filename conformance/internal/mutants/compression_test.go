package mutants

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// compressionMutants are servers and clients with one defect each, which the cases about
// compression must detect.
var compressionMutants = []mutant{
	{
		Name:   "never-flushes-its-compressor",
		Breaks: []string{"comp/gzip", "comp/first-event-latency", "comp/breach-opt-out"},
		Defect: defect{Handler: withoutFlush},
	},
	{
		Name: "answers-zstd-with-gzip", Breaks: []string{"comp/zstd"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if strings.Contains(r.Header.Get("Accept-Encoding"), "zstd") {
				r.Header.Set("Accept-Encoding", "gzip")
			}
		})},
	},
	{
		Name: "always-compresses", Breaks: []string{"comp/not-asked"},
		Defect: defect{Handler: withHeader("Accept-Encoding", "gzip")},
	},
	{
		Name: "ignores-a-quality-of-zero", Breaks: []string{"comp/not-asked"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Accept-Encoding"), "gzip;q=0") {
				r.Header.Set("Accept-Encoding", "gzip")
			}
		})},
	},
	{
		Name: "client-stops-after-one-event", Breaks: []string{"comp/multi-member"},
		Defect: defect{
			TransportClient: onRequests(nil, func(r transport.Receiver) transport.Receiver {
				return &oneEventReceiver{
					Receiver: r,
				}
			}),
		},
	},
	{
		Name: "always-deflates", Breaks: []string{"comp/ws-deflate", "comp/ws-declined"},
		Defect: defect{Handler: withHeader("Sec-WebSocket-Extensions", "permessage-deflate")},
	},
	{
		Name: "omits-server-no-context-takeover", Breaks: []string{"comp/ws-no-context"},
		Defect: defect{Network: onConns(func(c net.Conn) net.Conn {
			return &alteredConn{Conn: c, OnRead: replace("server_no_context", "client_no_context")}
		})},
	},
	{
		Name: "stays-in-its-segment-after-private-text", Breaks: []string{"comp/shared-history"},
		Defect: defect{Transport: onAccept(nil, func(s *transport.Stream) {
			if s.Segments {
				s.Sender = &heartbeatSender{Sender: s.Sender, encoder: s.Encoder}
			}
		})},
	},
	{
		Name: "ignores-that-history-is-excluded", Breaks: []string{"comp/shared-history"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if extensions := r.Header.Get("Sec-WebSocket-Extensions"); extensions != "" {
				r.Header.Set("Sec-WebSocket-Extensions",
					strings.ReplaceAll(extensions, "; server_no_context_takeover", ""))
			}
		})},
	},
	{
		Name: "encodes-events-for-each-watcher", Breaks: []string{"comp/shared-once"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			return []listwatch.Event{withData(e, e.Object.Data)}
		})},
	},
}

// withoutFlush returns a handler that compresses every response to a client that accepts
// only gzip, and never flushes the compressor.
func withoutFlush(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Vary", "Accept-Encoding")
		next.ServeHTTP(&unflushedWriter{w, gzip.NewWriter(w)}, r)
	})
}

type unflushedWriter struct {
	http.ResponseWriter
	gzip *gzip.Writer
}

func (u *unflushedWriter) Write(p []byte) (int, error) { return u.gzip.Write(p) }

// FlushError flushes the response, but not the compressor.
func (u *unflushedWriter) FlushError() error {
	return http.NewResponseController(u.ResponseWriter).Flush()
}

// oneEventReceiver is a receiver that ends after one event.
type oneEventReceiver struct {
	transport.Receiver
	done bool
}

func (o *oneEventReceiver) Receive() (framing.WatchEvent, error) {
	if o.done {
		return framing.WatchEvent{}, io.EOF
	}
	o.done = true
	return o.Receiver.Receive()
}

// A heartbeatSender adds a heartbeat to each batch of frames. The stream's encoder does not know
// about the heartbeat, so it keeps compressing with the shared history of its segment. The client's
// history differs from then on, because it contains the heartbeat.
type heartbeatSender struct {
	transport.Sender
	encoder transport.Encoder
}

func (h *heartbeatSender) Send(frames [][]byte) error {
	if heartbeat := h.encoder.Heartbeat(0); heartbeat != nil {
		frames = append(frames, heartbeat)
	}
	return h.Sender.Send(frames)
}
