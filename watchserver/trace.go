package watchserver

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace has hooks for logging, metrics and tracing, which a [Server] calls. Each hook may be
// nil. Hooks are called on the goroutine that serves the request or watch, possibly
// concurrently, so they must not block.
//
// The context of a hook is the context of the request, with the values that middleware has
// added. It may have ended. No hook receives the headers of the request, because they may
// contain credentials.
type Trace struct {
	// Refused is called after an error response to a request.
	Refused func(ctx context.Context, r Request, err error)
	// Listed is called after the response to a list.
	Listed func(ctx context.Context, l List)
	// Opened is called when a watch has been accepted, before its first event is written.
	Opened func(ctx context.Context, w Watch)
	// Sent is called after each write of a watch.
	Sent func(ctx context.Context, w Watch, sent Write)
	// Closed is called when a watch has ended. err is nil if reason is [EndComplete]. Otherwise
	// it gives the details.
	Closed func(ctx context.Context, w Watch, reason EndReason, err error)
}

// A Request describes a request.
type Request struct {
	// Client is the name that Server.ClientOf returned.
	Client string `json:"client"`
	// User is the name of the user whom Server.Authenticator or [WithUser] has identified. It is
	// empty if the user is unknown.
	User string `json:"user,omitempty"`
	// Method and Proto are as in http.Request, such as "GET" and "HTTP/1.1".
	Method string `json:"method"`
	Proto  string `json:"proto"`
	// URL is the request's path and query.
	URL string `json:"url"`
	// RemoteAddr is the address of the connection, which may be the address of a proxy.
	RemoteAddr string `json:"remoteAddr"`
}

// A List describes the response to a list.
type List struct {
	Request
	// Items is the number of objects in the page.
	Items int
	// Bytes is the number of bytes of the body that were written, after compression. It is zero
	// for HEAD.
	Bytes int64
	// Version is the version of the page.
	Version listwatch.Version
	// Took is the time from the start of the list to the end of the response.
	Took time.Duration
}

// A Watch describes an open watch, for hooks and for operators.
type Watch struct {
	Request
	// ID is unique within the Server.
	ID uint64 `json:"id"`
	// Transport is the name of the transport, such as "h2".
	Transport string `json:"transport"`
	// MediaType is the media type of the framing, such as "application/json".
	MediaType string `json:"mediaType"`
	// Compression is the compression of the stream: "gzip", "zstd" or "permessage-deflate". It
	// is empty if the stream is not compressed.
	Compression string    `json:"compression,omitempty"`
	Opened      time.Time `json:"opened"`
	// Events is the number of events written.
	Events int64 `json:"events"`
	// Bytes is the number of bytes written, after compression.
	Bytes int64 `json:"bytes"`
	// Version is the version of the last event or bookmark written.
	Version listwatch.Version `json:"resourceVersion,string"`
	// Writing is the duration of the current write so far, which is long if the client does
	// not read. It is zero if no write is in progress.
	Writing time.Duration `json:"writing"`
}

// A Write describes one write of a watch.
type Write struct {
	// Events is the number of events written. It is zero for a heartbeat or an ERROR event.
	Events int
	// Bytes is the number of bytes written, after compression.
	Bytes int
	// Took is the duration of the write.
	Took time.Duration
	// Lag is the time from the commit of the oldest event in the write to the end of the
	// write. It is zero if the Source does not report the time of commits (see
	// listwatch.Event.Committed), or if every event in the write is older than the watch, so
	// that the time depends on the client.
	Lag time.Duration
	// Err is the error of the write, after which the watch ends.
	Err error
}

// An EndReason is the reason why a watch ended, such as a label of a metric.
type EndReason string

// The reasons why a watch ends.
const (
	// EndComplete means that the time of the watch was up, or that its Source has ended it.
	EndComplete EndReason = "complete"
	// EndClientGone means that the client has disconnected, or does not answer pings.
	EndClientGone EndReason = "client gone"
	// EndTooSlow means that the client accepted no data for Limits.WriteTimeout.
	EndTooSlow EndReason = "too slow"
	// EndDrained means that Drain has ended the watch.
	EndDrained EndReason = "drained"
	// EndExpired means that the history that the watch needs was dropped: status 410.
	EndExpired EndReason = "expired"
	// EndRefused means that the watch was accepted, but ended because the client may not have
	// it: status 401, as when Endpoint.Until has passed, or 403.
	EndRefused EndReason = "refused"
	// EndCanceled means that the program ended the watch with another error: the request's
	// context has ended, or [Server.End] was called. If the context was canceled without a
	// cause, the reason is EndClientGone over HTTP/2, where the two look the same.
	EndCanceled EndReason = "canceled"
	// EndFailed means any other error, for example of the Source.
	EndFailed EndReason = "failed"
)

// endReason returns the reason for the end of s with the error err.
func (s *stream) endReason(err error) EndReason {
	_, sending := errors.AsType[*sendError](err)
	drainAt := s.drainAt.Load()
	switch {
	case err == nil:
		return EndComplete
	case errors.Is(err, errDraining), (sending || errors.Is(err, errClientGone)) && drainAt != nil && isDue(*drainAt, time.Now()):
		return EndDrained
	case errors.Is(err, listwatch.Expired):
		return EndExpired
	case errors.Is(err, listwatch.Unauthorized), errors.Is(err, listwatch.Forbidden):
		return EndRefused
	case sending && errors.Is(err, os.ErrDeadlineExceeded):
		return EndTooSlow
	case sending, errors.Is(err, errClientGone):
		return EndClientGone
	}
	if f := s.failure.Load(); f != nil && errors.Is(err, f.err) {
		return EndCanceled
	}
	return EndFailed
}

// describeRequest returns the description of r.
func (s *Server) describeRequest(r *http.Request) Request {
	return Request{Client: s.clientOf(r), User: UserOf(r.Context()).Name, Method: r.Method, Proto: r.Proto, URL: r.URL.RequestURI(), RemoteAddr: r.RemoteAddr}
}

// Refuse responds to r with err, like [WriteError], and calls Trace.Refused. It is for handlers
// that check a request before they pass it to Serve.
func (s *Server) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if t := s.Trace; t != nil && t.Refused != nil {
		defer func() { t.Refused(r.Context(), s.describeRequest(r), err) }()
	}
	WriteError(w, r, err)
}

// traceList calls Trace.Listed for a list that started at start.
func (s *Server) traceList(r *http.Request, page listwatch.Page, bytes int64, start time.Time) {
	if t := s.Trace; t != nil && t.Listed != nil {
		t.Listed(r.Context(), List{
			Request: s.describeRequest(r), Items: len(page.Items), Bytes: bytes, Version: page.Version, Took: time.Since(start),
		})
	}
}

// watchHooks are the hooks of a Trace for one watch. Like those, they may be nil.
type watchHooks struct {
	opened func(Watch)
	sent   func(Watch, Write)
	closed func(Watch, EndReason, error)
}

// forWatch returns the hooks for the watch whose request has the context ctx.
func (t *Trace) forWatch(ctx context.Context) (h watchHooks) {
	if t != nil && t.Opened != nil {
		h.opened = func(w Watch) { t.Opened(ctx, w) }
	}
	if t != nil && t.Sent != nil {
		h.sent = func(w Watch, sent Write) { t.Sent(ctx, w, sent) }
	}
	if t != nil && t.Closed != nil {
		h.closed = func(w Watch, reason EndReason, err error) { t.Closed(ctx, w, reason, err) }
	}
	return h
}
