package listwatch

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// A Code says what the caller can do about an error. It is itself an error, so that errors.Is(err, listwatch.Expired) works on
// every error of this module.
type Code uint8

// The codes. Their numbers are part of the API: append only.
const (
	Unknown       Code = iota // nothing is known to help
	Invalid                   // the request is wrong: mend it
	Expired                   // the history asked for is gone: list again
	NotYet                    // the version asked for is in the future: wait
	Unsupported               // the peer can't do that: ask for something else
	TooSlow                   // the reader fell behind and was cut off: resume
	Unavailable               // not now: try again, after Details.RetryAfter
	Corrupt                   // the peer broke the protocol, or the stream was cut off in the middle
	NotFound                  // there is no such thing
	Conflict                  // the object has changed since: read it again
	AlreadyExists             // the name is taken
	Unauthorized              // who are you?
	Forbidden                 // you may not
)

// codes holds, for each Code, its name and how Kubernetes spells it where an Error does not say.
var codes = [...]struct {
	name   string
	status int
	reason string
}{
	Unknown:       {"unknown", http.StatusInternalServerError, "InternalError"},
	Invalid:       {"invalid", http.StatusBadRequest, "BadRequest"},
	Expired:       {"expired", http.StatusGone, "Expired"},
	NotYet:        {"not yet", http.StatusGatewayTimeout, "Timeout"},
	Unsupported:   {"unsupported", http.StatusNotAcceptable, "NotAcceptable"},
	TooSlow:       {"too slow", http.StatusTooManyRequests, "TooManyRequests"},
	Unavailable:   {"unavailable", http.StatusServiceUnavailable, "ServiceUnavailable"},
	Corrupt:       {"corrupt", http.StatusInternalServerError, "InternalError"},
	NotFound:      {"not found", http.StatusNotFound, "NotFound"},
	Conflict:      {"conflict", http.StatusConflict, "Conflict"},
	AlreadyExists: {"already exists", http.StatusConflict, "AlreadyExists"},
	Unauthorized:  {"unauthorized", http.StatusUnauthorized, "Unauthorized"},
	Forbidden:     {"forbidden", http.StatusForbidden, "Forbidden"},
}

// Error returns the name of c.
func (c Code) Error() string {
	if int(c) < len(codes) {
		return codes[c].name
	}
	return "code " + strconv.Itoa(int(c))
}

// An Error is every error of this module but those of a context and [io.EOF], which pass unchanged. It carries what a Kubernetes
// Status can say, so that one made from a Status and turned back loses nothing.
type Error struct {
	// Code says what the caller can do.
	Code Code
	// Op is what was being done, such as "watch"; it may be empty.
	Op string
	// Remote is true where the peer said so, false where this side found it.
	Remote bool
	// Status is the HTTP status and Reason Kubernetes' word for it. Zero and empty: those that belong to Code.
	Status int
	Reason string
	// Message is for people. Empty: Err or Code says it all.
	Message string
	// Details says more; it may be nil.
	Details *Details
	// Continue, of an [Expired] continue token, is one with which the list goes on at the newest state.
	Continue string
	// Err is the cause; it may be nil.
	Err error
}

// Details says what an Error is about.
type Details struct {
	// Name, Group, Kind and UID name the object; Kind is the plural of the resource, as in Kubernetes.
	Name, Group, Kind, UID string
	// Causes are the single complaints.
	Causes []Cause
	// RetryAfter is how long to wait before another try; zero: not said. On the wire it is in whole seconds, rounded up.
	RetryAfter time.Duration
}

// A Cause is one complaint: a machine's word, a sentence, and the field it is about.
type Cause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// Error returns "op: code: message: cause", without the parts that are empty.
func (e *Error) Error() string {
	s := e.Code.Error()
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports whether target is e's Code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HTTPStatus returns the status that says e over HTTP: Status where that is one of an error, 400 to 599, else that of Code.
func (e *Error) HTTPStatus() int {
	if e.Status >= 400 && e.Status <= 599 {
		return e.Status
	}
	if int(e.Code) < len(codes) {
		return codes[e.Code].status
	}
	return http.StatusInternalServerError
}

// RetryAfter returns how long the peer or the source asked to wait; zero: not said.
func (e *Error) RetryAfter() time.Duration {
	if e.Details == nil {
		return 0
	}
	return e.Details.RetryAfter
}

// AsError returns err as an *Error: itself, the one it wraps, or a new one of code [Unknown] around it; nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Unknown, Err: err}
}

// CodeOf returns the code of err; [Unknown] where it has none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Unknown
}
