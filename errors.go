package listwatch

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// A Code classifies errors by what the caller can do. It is itself an error, so that
// errors.Is(err, listwatch.Expired) works on every error of this module.
type Code uint8

// The codes. Their numbers are part of the API: only append.
const (
	Unknown       Code = iota // no remedy is known
	Invalid                   // the request is wrong: fix it
	Expired                   // the requested history is no longer available: list again
	NotYet                    // the requested version is in the future: wait
	Unsupported               // the peer cannot do this: ask for something else
	TooSlow                   // the reader fell behind and was disconnected: resume
	Unavailable               // a temporary failure: retry after Details.RetryAfter
	Corrupt                   // the peer broke the protocol, or the stream ended within an event
	NotFound                  // the object or collection does not exist
	Conflict                  // the object was changed by another writer: read it again
	AlreadyExists             // an object of this name exists
	Unauthorized              // the credentials are missing or wrong
	Forbidden                 // the credentials do not allow the request
)

// codes holds the name of each Code, and the default HTTP status of an Error with this Code.
var codes = [...]struct {
	name   string
	status int
}{
	Unknown:       {"unknown", http.StatusInternalServerError},
	Invalid:       {"invalid", http.StatusBadRequest},
	Expired:       {"expired", http.StatusGone},
	NotYet:        {"not yet", http.StatusGatewayTimeout},
	Unsupported:   {"unsupported", http.StatusNotAcceptable},
	TooSlow:       {"too slow", http.StatusTooManyRequests},
	Unavailable:   {"unavailable", http.StatusServiceUnavailable},
	Corrupt:       {"corrupt", http.StatusInternalServerError},
	NotFound:      {"not found", http.StatusNotFound},
	Conflict:      {"conflict", http.StatusConflict},
	AlreadyExists: {"already exists", http.StatusConflict},
	Unauthorized:  {"unauthorized", http.StatusUnauthorized},
	Forbidden:     {"forbidden", http.StatusForbidden},
}

// Error returns the name of c.
func (c Code) Error() string {
	if int(c) < len(codes) {
		return codes[c].name
	}
	return "code " + strconv.Itoa(int(c))
}

// An Error is the error of a failed list, watch or write. The errors of a context and [io.EOF] are
// returned unchanged. An Error has a field for everything in a Status of Kubernetes, so that
// converting a Status to an Error and back loses nothing; see package kubestatus.
//
// A server sends Code, Status, Reason, Message, Details and Continue to its clients. It never sends
// Op or the text of Err.
type Error struct {
	// Code classifies the error by what the caller can do.
	Code Code
	// Op is the operation that failed, such as "watch". It may be empty. Clients do not receive it.
	Op string
	// Remote is true if the peer reported the error, and false if this side detected it.
	Remote bool
	// Status is the HTTP status, and Reason is the reason in Kubernetes' Status. If Status is zero
	// or Reason is empty, the default of the Code is used.
	Status int
	Reason string
	// Message is for people, including every client of a server: it must not name anything that
	// only the operator may know. If it is empty, clients receive the name of the Code.
	Message string
	// Details describes the object and the causes. It may be nil.
	Details *Details
	// Continue is a new continue token. It is set if the token of the request has expired. With the
	// new token, the list continues at the newest state.
	Continue string
	// Err is the underlying error. It may be nil. Its text is for the log of the server: clients do
	// not receive it. If it says what is wrong with a request, make it part of Message.
	Err error
}

// Details describes the object and the causes of an [Error].
type Details struct {
	// Name, Group, Kind and UID identify the object. Kind is the plural name of the resource, as in
	// Kubernetes.
	Name, Group, Kind, UID string
	// Causes lists what is wrong.
	Causes []Cause
	// RetryAfter is the time to wait before a retry, or zero if unknown. On the wire it is a
	// number of whole seconds, rounded up.
	RetryAfter time.Duration
}

// A Cause is one thing that is wrong: a reason for programs, a message for people, and the path of
// the field. It is also an error, so that a function that validates an object can return it; see
// the field Admit of store.CollectionSpec.
type Cause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// The reasons of causes, as in Kubernetes (metav1.CauseType).
const (
	CauseInvalid   = "FieldValueInvalid"
	CauseRequired  = "FieldValueRequired"
	CauseForbidden = "FieldValueForbidden"
	// CauseTooLarge distinguishes [NotYet] from other timeouts.
	CauseTooLarge = "ResourceVersionTooLarge"
)

// Error returns "field: message", or the message if there is no field.
func (c Cause) Error() string {
	if c.Field == "" {
		return c.Message
	}
	return c.Field + ": " + c.Message
}

// Error returns "op: code: message: err", without the empty parts.
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

// Is reports whether target is the Code of e.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// HTTPStatus returns the HTTP status of a response that reports e: Status if it is between 400 and
// 599, otherwise the status that belongs to Code.
func (e *Error) HTTPStatus() int {
	if e.Status >= 400 && e.Status <= 599 {
		return e.Status
	}
	if int(e.Code) < len(codes) {
		return codes[e.Code].status
	}
	return http.StatusInternalServerError
}

// RetryAfter returns Details.RetryAfter, or zero if e has no Details.
func (e *Error) RetryAfter() time.Duration {
	if e.Details == nil {
		return 0
	}
	return e.Details.RetryAfter
}

// AsError returns the *Error that err is or wraps. For any other error it returns a new *Error of
// code [Unknown] that wraps err, and for nil it returns nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Unknown, Err: err}
}

// CodeOf returns the code of the *Error that err is or wraps, or [Unknown] if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Unknown
}
