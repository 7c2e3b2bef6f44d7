package mutants

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// limitMutants are servers and clients with one defect each, which the cases about limits must
// detect. Mutants of the server come first, then mutants of the client.
var limitMutants = []mutant{
	{
		Name: "accepts-any-header-size", Breaks: []string{"limit/h1-header-bytes", "limit/h2-continuation-flood"},
		Defect: defect{
			HTTP: func(s *http.Server) { s.MaxHeaderBytes = 64 << 20 },
			Handler: onRequest(func(r *http.Request) {
				for _, name := range []string{"X-One", "X-Many", "X-Flood"} {
					r.Header.Del(name)
				}
			}),
		},
	},
	{
		Name: "drops-long-selectors", Breaks: []string{"limit/uri-long"},
		Defect: defect{Handler: onQuery(func(q url.Values) {
			if len(q.Get("labelSelector")) > 1<<10 {
				q.Del("labelSelector")
			}
		})},
	},
	{
		Name: "keeps-ambiguous-connections-open", Breaks: []string{"limit/smuggling"},
		Defect: defect{Handler: onRequest(func(r *http.Request) { r.TransferEncoding, r.Body = nil, http.NoBody })},
	},
	{
		Name: "no-header-timeout", Breaks: []string{"limit/slowloris"},
		Defect: defect{HTTP: func(s *http.Server) { s.ReadHeaderTimeout = -1 }},
	},
	{
		Name: "leaks-a-slot-per-reset", Breaks: []string{"limit/h2-rapid-reset"},
		Defect: defect{Handler: leakingSlots},
	},
	{
		Name: "refuses-messages", Breaks: []string{"limit/ws-client-talks"},
		Defect: defect{Handler: onReads(textAsUnknown)},
	},
	{
		Name: "closes-large-frames-with-1000", Breaks: []string{"limit/ws-client-floods"},
		Defect: defect{Handler: onWrites(withNormalClose)},
	},
	{
		Name: "changes-pong-data", Breaks: []string{"limit/ws-ping-flood"},
		Defect: defect{Handler: onWrites(pongsWrongly)},
	},
	{
		Name: "refuses-with-503", Breaks: []string{"limit/max-watches"},
		Defect: defect{Handler: onErrors(func(status int, body []byte) (int, []byte) {
			if status == http.StatusTooManyRequests {
				status = http.StatusServiceUnavailable
			}
			return status, body
		})},
	},
	{
		Name: "refuses-without-retry-after", Breaks: []string{"limit/max-watches"},
		Defect: defect{Handler: onHeader(func(h http.Header) { h.Del("Retry-After") })},
	},

	{
		Name: "client-uses-one-connection", Breaks: []string{"limit/h2-concurrent-streams"},
		Defect: defect{TransportClient: onDials(oneConnection())},
	},
	{
		Name: "client-limit-is-24-MiB", Breaks: []string{"limit/event-too-big-client", "limit/bomb"},
		Defect: defect{TransportClient: onDials(withLimit(24 << 20))},
	},
	{
		Name:   "client-treats-rejection-as-clean-end",
		Breaks: []string{"limit/json-depth", "limit/event-too-big-client", "limit/bomb"},
		Defect: defect{
			TransportClient: onReceiveError(func(error) error { return io.EOF }),
		},
	},
	{
		Name: "client-sends-credentials-to-other-hosts", Breaks: []string{"limit/redirect"},
		Defect: defect{TransportClient: onClientConns(func(c *alteredConn) {
			c.OnWrite = replace("Accept: ", "Cookie: a=b\r\nAccept: ")
		})},
	},
	{
		Name: "client-sends-its-headers-to-other-hosts", Breaks: []string{"limit/redirect-headers"},
		Defect: defect{TransportClient: onClientConns(func(c *alteredConn) {
			c.OnWrite = replace("Accept: ", "X-Private: c\r\nAccept: ")
		})},
	},
}

// leakingSlots returns a handler that serves at most 100 requests at once, and never frees the slot
// of a request that was reset.
func leakingSlots(next http.Handler) http.Handler {
	slots := make(chan struct{}, 100)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer func() {
			if r.Context().Err() == nil {
				<-slots
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// textAsUnknown gives text messages a reserved opcode. p is the data of one read.
func textAsUnknown(p []byte) []byte {
	if len(p) > 0 && p[0]&^bitFinal == opText {
		p[0] += 2
	}
	return p
}

// pongsWrongly changes the last byte of a pong frame. p is the data of one write.
func pongsWrongly(p []byte) []byte {
	if p[0] == bitFinal|opPong && p[1] > 0 {
		p[len(p)-1] ^= 0xff
	}
	return p
}

// oneConnection returns a dialFunc that opens at most 250 streams, as if all streams had to fit on
// one connection.
func oneConnection() dialFunc {
	var dialed atomic.Int64
	return func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
		if dialed.Add(1) > 250 {
			return nil, &listwatch.Error{Code: listwatch.Unavailable, Message: "the connection has no free stream"}
		}
		return c.Dial(ctx, r)
	}
}
