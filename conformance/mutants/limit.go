package mutants

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/transport"
)

// limitMutants break the cases of limits: first servers, then clients.
var limitMutants = []Mutant{
	{"takes-any-headers", []string{"limit/h1-header-bytes", "limit/h2-continuation-flood"}, cases.Interceptors{
		HTTP: func(s *http.Server) { s.MaxHeaderBytes = 64 << 20 },
		Handler: onRequest(func(r *http.Request) {
			for _, name := range []string{"X-One", "X-Many", "X-Flood"} {
				r.Header.Del(name)
			}
		}),
	}},
	{"drops-long-selectors", []string{"limit/uri-long"}, cases.Interceptors{Handler: onQuery(func(q url.Values) {
		if len(q.Get("labelSelector")) > 1<<10 {
			q.Del("labelSelector")
		}
	})}},
	{"keeps-connections-of-chunks", []string{"limit/smuggling"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) { r.TransferEncoding = nil })}},
	{"waits-for-headers", []string{"limit/slowloris"}, cases.Interceptors{HTTP: func(s *http.Server) { s.ReadHeaderTimeout = -1 }}},
	{"remembers-who-was-reset", []string{"limit/h2-rapid-reset"}, cases.Interceptors{Handler: hoarding}},
	{"closes-large-frames-with-1000", []string{"limit/ws-client-talks"}, cases.Interceptors{Handler: onWrites(closesNormally)}},
	{"pongs-something-else", []string{"limit/ws-ping-flood"}, cases.Interceptors{Handler: onWrites(pongsWrongly)}},
	{"refuses-with-503", []string{"limit/max-watches"}, cases.Interceptors{Handler: onErrors(func(status int, body []byte) (int, []byte) {
		if status == http.StatusTooManyRequests {
			status = http.StatusServiceUnavailable
		}
		return status, body
	})}},
	{"refuses-without-retry-after", []string{"limit/max-watches"}, cases.Interceptors{Handler: onHeader(func(h http.Header) { h.Del("Retry-After") })}},

	{"client-knows-one-connection", []string{"limit/h2-concurrent-streams"}, cases.Interceptors{TransportClient: onDials(oneConnection())}},
	{"client-has-no-limit", []string{"limit/event-too-big-client", "limit/bomb"}, cases.Interceptors{TransportClient: onDials(withLimit(24 << 20))}},
	{"client-takes-what-is-refused-for-an-end", []string{"limit/json-depth", "limit/event-too-big-client", "limit/bomb"}, cases.Interceptors{
		TransportClient: endingIn(func(error) error { return io.EOF }),
	}},
	{"client-tells-strangers", []string{"limit/redirect"}, cases.Interceptors{TransportClient: overNetwork(func(c *alteredConn) {
		c.onWrite = replace("Accept: ", "X-Private: c\r\nAccept: ")
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
	if p[0] == bitFinal|opPong && p[1] > 0 {
		p[len(p)-1] ^= 0xff
	}
	return p
}

// dialsAs is how [onDials] opens a stream.
type dialsAs = func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error)

// oneConnection dials as many streams as go on one.
func oneConnection() dialsAs {
	var dialled atomic.Int64
	return func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
		if dialled.Add(1) > 250 {
			return nil, &listwatch.Error{Code: listwatch.Unavailable, Message: "no stream is free"}
		}
		return c.Dial(ctx, r)
	}
}

// withLimit dials with another limit.
func withLimit(limit int) dialsAs {
	return func(c transport.Client, ctx context.Context, r *transport.Request) (transport.Receiver, error) {
		more := *r
		more.Limit = limit
		return c.Dial(ctx, &more)
	}
}
