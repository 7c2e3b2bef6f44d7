package apihttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/kubestatus"
)

// A methodError is an error of status 405. Its response must list the allowed methods
// (rfc9110#section-15.5.6).
type methodError struct {
	error
	allow string
}

func (e methodError) Unwrap() error { return e.error }

// MethodNotAllowed returns an error of status 405. allow holds the allowed methods, which
// [WriteError] sends in the Allow header (rfc9110#section-15.5.6).
func MethodNotAllowed(r *http.Request, allow string) error {
	return methodError{&listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
		Message: fmt.Sprintf("method %s is not allowed on %s; use %s", r.Method, r.URL.Path, allow),
	}, allow}
}

// WriteError is documented at watchserver.WriteError.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	httpbody.Settle(w, r)
	status := kubestatus.Of(err)
	h := w.Header()
	if e, ok := err.(methodError); ok {
		h.Set("Allow", e.allow)
	}
	retryAfter := 0
	if status.Details != nil {
		retryAfter = status.Details.RetryAfterSeconds
	}
	switch status.Code {
	case http.StatusUnauthorized:
		if h.Get("WWW-Authenticate") == "" {
			h.Set("WWW-Authenticate", `Bearer realm="listwatch"`)
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		h.Set("Retry-After", strconv.Itoa(max(retryAfter, 1)))
	case http.StatusGatewayTimeout:
		if retryAfter > 0 {
			h.Set("Retry-After", strconv.Itoa(retryAfter))
		}
	}
	WriteObject(w, r, status.Code, status)
}

// WriteObject is like [WriteJSON], but writes v, which must be an object, as CBOR if the Accept
// headers of r prefer application/cbor.
func WriteObject(w http.ResponseWriter, r *http.Request, code int, v any) {
	body := marshal(v)
	if mediaType, _ := BodyType(r); mediaType == cborType {
		if item, err := framing.AppendCBOR([]byte(framing.CBORSelfDescribed), body); err == nil {
			writeSmall(w, r, code, cborType, item)
			return
		}
	}
	writeSmall(w, r, code, jsonType, append(body, '\n'))
}

// WriteJSON responds to r with status code and v as JSON on one line. It panics if v cannot
// be encoded. It writes no body for HEAD.
func WriteJSON(w http.ResponseWriter, r *http.Request, code int, v any) {
	writeSmall(w, r, code, jsonType, append(marshal(v), '\n'))
}

func marshal(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic("apihttp: encode a response: " + err.Error())
	}
	return body
}

// writeSmall responds with a body that is not compressed.
func writeSmall(w http.ResponseWriter, r *http.Request, code int, mediaType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if a := admittedOf(r); a != nil {
		a.answering()
	}
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		w.Write(body) // an error means that the client has disconnected
	}
}

// WriteBody responds to r with status code, the headers in w, and the concatenation of parts.
// If the Content-Type in w is application/cbor, parts must be a JSON object, which WriteBody
// converts to CBOR. The body is compressed if it is larger than 32 KiB and the client accepts
// gzip, and indented if it is JSON and the query has pretty=true. WriteBody does not retain
// parts.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, parts ...[]byte) {
	if w.Header().Get("Content-Type") == cborType {
		item, err := framing.AppendCBOR([]byte(framing.CBORSelfDescribed), bytes.Join(parts, nil))
		if err != nil {
			WriteError(w, r, err)
			return
		}
		parts = [][]byte{item}
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if a := admittedOf(r); a != nil && size > compressAbove {
		// The memory for the body of a write is enough for its response.
		err := a.take(budget.Amount{Bytes: listBytes})
		if err != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			WriteError(w, r, err)
			return
		}
	}
	b := newResponseBody(w, r, code)
	for _, p := range parts {
		if _, err := b.Write(p); err != nil {
			break // the client has disconnected, or Close returns the error
		}
	}
	if b.Close() != nil {
		WriteError(w, r, ContextError(r.Context()))
	}
}

// ContextError returns the error for a request whose context ctx has ended. It is the cause of ctx
// if that is a *listwatch.Error. Otherwise it has status 504 if the deadline of ctx has passed, and
// status 503 if not.
func ContextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*listwatch.Error](cause); ok {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return &listwatch.Error{
			Code: listwatch.Unavailable, Status: http.StatusGatewayTimeout, Reason: "Timeout",
			Message: "the request has reached its deadline", Err: cause,
		}
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Message: "the request was canceled", Err: cause}
}

// Refusal returns err, which refuses a request, with the given code. It returns err itself if err
// is nil or already has a code. The client receives only its [Reason].
func Refusal(code listwatch.Code, err error) error {
	if err == nil || listwatch.CodeOf(err) != listwatch.Unknown {
		return err
	}
	if _, ok := err.(listwatch.Cause); ok {
		return &listwatch.Error{Code: code, Message: Reason(err)}
	}
	return &listwatch.Error{Code: code, Message: Reason(err), Err: err}
}

// Reason returns what a client may know of err, which refuses a request: the text of a
// listwatch.Cause or the message of a *listwatch.Error. It returns "" for any other error, which
// may come from a database or a directory.
func Reason(err error) string {
	if c, ok := errors.AsType[listwatch.Cause](err); ok {
		return c.Error()
	}
	return listwatch.AsError(err).Message
}
