package watchserver

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpbody"
)

// check refuses a request whose URL or headers are too large.
func (l Limits) check(r *http.Request) error {
	if limit := cmp.Or(l.URLBytes, DefaultURLBytes); limit > 0 && len(r.URL.Path)+len(r.URL.RawQuery) > limit {
		return &LimitError{"url_bytes", &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestURITooLong, Reason: "RequestURITooLong",
			Message: fmt.Sprintf("the URL is longer than %d bytes", limit),
		}}
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
		return &LimitError{"header_bytes", &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "RequestHeaderFieldsTooLarge",
			Message: fmt.Sprintf("the headers are longer than %d bytes", limit),
		}}
	}
	return nil
}

// GuardBody keeps the request body of r from holding its HTTP/1.1 connection: the connection closes
// if the body does not arrive in time, or if its length is doubtful (rfc9112#section-6.1).
//
// Serve calls it. Handlers of other requests on the same port should call it first, read the body
// with [Server.ReadBody], and refuse requests with [Server.Refuse] or [WriteError].
func GuardBody(w http.ResponseWriter, r *http.Request) { httpbody.Guard(w, r) }

// errTooManyWatches refuses a watch because owner has reached the limit called name.
func errTooManyWatches(name, owner string, limit int) error {
	return &LimitError{name, &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusTooManyRequests, Reason: "TooManyRequests",
		Message: fmt.Sprintf("too many watches: %s already has %d open, its limit", owner, limit),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}}
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

// ReadBody reads the body of a write. A body of more than limit bytes is refused with status 413,
// and a client that takes longer than 30 s with status 400. A negative limit means no limit. Drain
// shortens the time.
func (s *Server) ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := httpbody.Read(s.watches.drainContext(), w, r, limit)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, BodyTooLarge(limit)
	}
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the request body could not be read", Err: err}
	}
	return data, nil
}

// BodyTooLarge returns the error of status 413 that refuses a body of more than limit bytes.
func BodyTooLarge(limit int64) error {
	return &LimitError{"body_bytes", &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusRequestEntityTooLarge, Reason: "RequestEntityTooLarge",
		Message: fmt.Sprintf("Request entity too large: limit is %d", limit),
	}}
}

// A LimitError is the error of a request that exceeds a limit, so that refusals can be counted by
// limit. It has the code and status of Err.
type LimitError struct {
	// Limit is a short name of the limit, such as "watches_per_client". The names are few and do
	// not depend on the request.
	Limit string
	// Err is the error that the client receives.
	Err error
}

// Error implements error.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *LimitError) Unwrap() error { return e.Err }
