package limit

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/transport"
)

// Mutants break the cases of limits: first servers, then clients.
var Mutants = []mutation.Mutant{
	{Name: "takes-any-headers", Breaks: []string{"limit/h1-header-bytes", "limit/h2-continuation-flood"}, Defect: reference.Interceptors{
		HTTP: func(s *http.Server) { s.MaxHeaderBytes = 64 << 20 },
		Handler: mutation.OnRequest(func(r *http.Request) {
			for _, name := range []string{"X-One", "X-Many", "X-Flood"} {
				r.Header.Del(name)
			}
		}),
	}},
	{Name: "drops-long-selectors", Breaks: []string{"limit/uri-long"}, Defect: reference.Interceptors{Handler: mutation.OnQuery(func(q url.Values) {
		if len(q.Get("labelSelector")) > 1<<10 {
			q.Del("labelSelector")
		}
	})}},
	{Name: "keeps-connections-of-chunks", Breaks: []string{"limit/smuggling"}, Defect: reference.Interceptors{Handler: mutation.OnRequest(func(r *http.Request) { r.TransferEncoding = nil })}},
	{Name: "waits-for-headers", Breaks: []string{"limit/slowloris"}, Defect: reference.Interceptors{HTTP: func(s *http.Server) { s.ReadHeaderTimeout = -1 }}},
	{Name: "remembers-who-was-reset", Breaks: []string{"limit/h2-rapid-reset"}, Defect: reference.Interceptors{Handler: hoarding}},
	{Name: "closes-large-frames-with-1000", Breaks: []string{"limit/ws-client-talks"}, Defect: reference.Interceptors{Handler: mutation.OnWrites(mutation.ClosesNormally)}},
	{Name: "pongs-something-else", Breaks: []string{"limit/ws-ping-flood"}, Defect: reference.Interceptors{Handler: mutation.OnWrites(pongsWrongly)}},
	{Name: "refuses-with-503", Breaks: []string{"limit/max-watches"}, Defect: reference.Interceptors{Handler: mutation.OnErrors(func(status int, body []byte) (int, []byte) {
		if status == http.StatusTooManyRequests {
			status = http.StatusServiceUnavailable
		}
		return status, body
	})}},
	{Name: "refuses-without-retry-after", Breaks: []string{"limit/max-watches"}, Defect: reference.Interceptors{Handler: mutation.OnHeader(func(h http.Header) { h.Del("Retry-After") })}},

	{Name: "client-knows-one-connection", Breaks: []string{"limit/h2-concurrent-streams"}, Defect: reference.Interceptors{TransportClient: mutation.OnDials(oneConnection())}},
	{Name: "client-has-no-limit", Breaks: []string{"limit/event-too-big-client", "limit/bomb"}, Defect: reference.Interceptors{TransportClient: mutation.OnDials(mutation.WithLimit(24 << 20))}},
	{Name: "client-takes-what-is-refused-for-an-end", Breaks: []string{"limit/json-depth", "limit/event-too-big-client", "limit/bomb"}, Defect: reference.Interceptors{
		TransportClient: mutation.EndingIn(func(error) error { return io.EOF }),
	}},
	{Name: "client-tells-strangers", Breaks: []string{"limit/redirect"}, Defect: reference.Interceptors{TransportClient: mutation.OverNetwork(func(c *mutation.AlteredConn) {
		c.OnWrite = mutation.Replace("Accept: ", "X-Private: c\r\nAccept: ")
	})}},
}

// hoarding returns a handler that serves so many requests at once, and never gives the place of one back that was reset.
func hoarding(next http.Handler) http.Handler {
	places := make(chan struct{}, 100)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer func() {
			if r.Context().Err() == nil {
				<-places
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// pongsWrongly changes the last byte of a pong; p is one write.
func pongsWrongly(p []byte) []byte {
	if p[0] == mutation.BitFinal|mutation.OpPong && p[1] > 0 {
		p[len(p)-1] ^= 0xff
	}
	return p
}

// oneConnection dials as many streams as go on one.
func oneConnection() mutation.DialsAs {
	var dialled atomic.Int64
	return func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
		if dialled.Add(1) > 250 {
			return nil, &listwatch.Error{Code: listwatch.Unavailable, Message: "no stream is free"}
		}
		return c.Dial(ctx, r)
	}
}
