package watchserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/listwatch/listwatch"
)

// An allowError is a 405; RFC 9110 15.5.6 demands that it says what is allowed.
type allowError struct {
	error
	allow string
}

func (e allowError) Unwrap() error { return e.error }

func methodNotAllowed(r *http.Request, allow string) error {
	return allowError{&listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
		Message: fmt.Sprintf("%s is not allowed here, only %s", r.Method, allow),
	}, allow}
}

// WriteError answers r with err as a Kubernetes Status, under the HTTP status that belongs to it, with the headers that the
// standards demand: Allow, Retry-After, WWW-Authenticate.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	status := listwatch.StatusOf(err)
	h := w.Header()
	if e, ok := err.(allowError); ok {
		h.Set("Allow", e.allow)
	}
	switch status.Code {
	case http.StatusUnauthorized:
		if h.Get("WWW-Authenticate") == "" {
			h.Set("WWW-Authenticate", `Bearer realm="listwatch"`)
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		seconds := 1
		if status.Details != nil {
			seconds = max(status.Details.RetryAfterSeconds, 1)
		}
		h.Set("Retry-After", strconv.Itoa(seconds))
	case http.StatusGatewayTimeout:
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			h.Set("Retry-After", strconv.Itoa(status.Details.RetryAfterSeconds))
		}
	}
	WriteJSON(w, r, status.Code, status)
}

// WriteJSON answers r with v as JSON on one line.
func WriteJSON(w http.ResponseWriter, r *http.Request, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("watchserver: encode a response: " + err.Error())
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		w.Write(append(body, '\n')) // an error means that the client is gone
	}
}
