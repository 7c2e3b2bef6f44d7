package watchserver

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
)

// check refuses a request whose URL or headers are too large.
func (l Limits) check(r *http.Request) error {
	if limit := cmp.Or(l.URLBytes, DefaultURLBytes); limit > 0 && len(r.URL.Path)+len(r.URL.RawQuery) > limit {
		return &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestURITooLong, Reason: "RequestURITooLong",
			Message: fmt.Sprintf("the URL is longer than %d bytes", limit),
		}
	}
	limit := cmp.Or(l.HeaderBytes, DefaultHeaderBytes)
	if limit < 0 {
		return nil
	}
	size := 0
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if size > limit {
		return &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "RequestHeaderFieldsTooLarge",
			Message: fmt.Sprintf("the headers are longer than %d bytes", limit),
		}
	}
	return nil
}

// CloseAfterChunkedRequest makes the server close the connection after the response if r is an
// HTTP/1.1 request with a chunked body. If such a request also has a Content-Length, it may be
// an attempt to smuggle another request past a proxy, and "the server MUST close the connection
// after responding to such a request" (rfc9112#section-6.1). net/http silently drops that
// Content-Length, so any chunked request may have had one.
//
// Serve calls it. Handlers of other requests on the same port should call it as well.
func CloseAfterChunkedRequest(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
}

// errTooManyWatches refuses a watch because owner has reached its limit.
func errTooManyWatches(owner string, limit int) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusTooManyRequests, Reason: "TooManyRequests",
		Message: fmt.Sprintf("too many watches: %s already has %d open, its limit", owner, limit),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// errShuttingDown refuses a watch because the server drains.
func errShuttingDown() error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the server is shutting down; retry shortly, or use another server",
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// errListTimeout ends a list that took longer than its timeoutSeconds.
func errListTimeout(d time.Duration) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusGatewayTimeout, Reason: "Timeout",
		Message: fmt.Sprintf("the list was not ready within timeoutSeconds (%v)", d),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}
