package watchserver

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
)

// The defaults of [Limits] and [Timing].
const (
	DefaultURLBytes    = 16 << 10
	DefaultHeaderBytes = 64 << 10
	DefaultBatchBytes  = 64 << 10
	DefaultBookmark    = time.Minute
	DefaultTimeout     = 30 * time.Minute
	DefaultHeartbeat   = 20 * time.Second
)

// check refuses requests that are too large to look into.
func (l Limits) check(r *http.Request) error {
	if most := cmp.Or(l.URLBytes, DefaultURLBytes); most > 0 && len(r.URL.Path)+len(r.URL.RawQuery) > most {
		return &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestURITooLong, Reason: "RequestURITooLong",
			Message: fmt.Sprintf("the URL has more than %d bytes", most),
		}
	}
	most := cmp.Or(l.HeaderBytes, DefaultHeaderBytes)
	if most < 0 {
		return nil
	}
	size := 0
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + 4
		}
	}
	if size > most {
		return &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "RequestHeaderFieldsTooLarge",
			Message: fmt.Sprintf("the headers have more than %d bytes", most),
		}
	}
	return nil
}

// CloseAfterChunks has the connection of an HTTP/1.1 request closed behind its answer, where the request came in chunks. One that has
// a Content-Length too may be an attempt at smuggling another request past a proxy, and "the server MUST close the connection after responding to
// such a request" (rfc9112#section-6.1); net/http drops that length without a word, so that any request in chunks may be one. Serve does
// it; handlers of other requests on the same port should.
func CloseAfterChunkedRequest(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
}

// tooManyWatches is the answer to a watch over a limit.
func tooManyWatches(what string, most int) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusTooManyRequests, Reason: "TooManyRequests",
		Message: fmt.Sprintf("too many watches: %s has %d open, which is the limit", what, most),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// draining is the answer to a watch that comes while the server shuts down.
func draining() error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the server is shutting down; try another one, or again shortly",
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// timedOut is the answer to a list that took longer than its timeoutSeconds.
func timedOut(d time.Duration) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusGatewayTimeout, Reason: "Timeout",
		Message: fmt.Sprintf("the list was not ready within timeoutSeconds, %v", d),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}
