package listwatch

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A Status is how Kubernetes spells an error (metav1.Status), as the body of an HTTP response and as the object of an ERROR event.
type Status struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   StatusMetadata `json:"metadata"`
	Status     string         `json:"status"`
	Message    string         `json:"message,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	Details    *StatusDetails `json:"details,omitempty"`
	Code       int            `json:"code,omitempty"`
}

// StatusMetadata is the metadata of a [Status]: that of a list, of which only the continue token is used.
type StatusMetadata struct {
	Continue string `json:"continue,omitempty"`
}

// StatusDetails is the details of a [Status].
type StatusDetails struct {
	Name              string  `json:"name,omitempty"`
	Group             string  `json:"group,omitempty"`
	Kind              string  `json:"kind,omitempty"`
	UID               string  `json:"uid,omitempty"`
	Causes            []Cause `json:"causes,omitempty"`
	RetryAfterSeconds int     `json:"retryAfterSeconds,omitempty"`
}

// CauseTooLarge is the reason of the cause that tells a version in the future from other time-outs.
const CauseTooLarge = "ResourceVersionTooLarge"

// The reasons of causes that complain about one field, as Kubernetes spells them (metav1.CauseType).
const (
	CauseInvalid   = "FieldValueInvalid"
	CauseRequired  = "FieldValueRequired"
	CauseForbidden = "FieldValueForbidden"
)

// causeTooSlow tells a reader that was cut off from other 429s; it is ours alone.
const causeTooSlow = "TooSlow"

// StatusOf returns err as a Status. An error that is no [*Error] becomes an InternalError with its text.
func StatusOf(err error) Status {
	e := AsError(err)
	s := Status{Kind: "Status", APIVersion: "v1", Status: "Failure", Reason: e.Reason, Code: e.HTTPStatus(), Message: e.Message}
	if s.Reason == "" && int(e.Code) < len(codes) {
		s.Reason = codes[e.Code].reason
	}
	switch {
	case s.Message == "":
		s.Message = e.Error()
	case e.Err != nil:
		s.Message += ": " + e.Err.Error()
	}
	s.Metadata.Continue = e.Continue
	s.Details = statusDetails(e, s.Message)
	return s
}

func statusDetails(e *Error, message string) *StatusDetails {
	var d StatusDetails
	if e.Details != nil {
		d = StatusDetails{
			Name: e.Details.Name, Group: e.Details.Group, Kind: e.Details.Kind, UID: e.Details.UID,
			Causes: e.Details.Causes, RetryAfterSeconds: wholeSeconds(e.Details.RetryAfter),
		}
	}
	switch {
	case len(d.Causes) > 0:
	case e.Code == TooSlow:
		d.Causes = []Cause{{Reason: causeTooSlow, Message: message}}
	case e.Code == NotYet:
		d.Causes = []Cause{{Reason: CauseTooLarge, Message: "Too large resource version"}}
		d.RetryAfterSeconds = max(d.RetryAfterSeconds, 1)
	case e.Details == nil:
		return nil
	}
	return &d
}

// seconds keeps what a peer asks for within what a Duration can hold.
func seconds(n int) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(max(int64(n), 0), most)) * time.Second
}

func wholeSeconds(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	n := d / time.Second
	if d%time.Second != 0 {
		n++
	}
	return int(n)
}

// ParseStatus reads a Status from JSON and returns it as an error that the peer sent. What is no Status with "status":"Failure" is
// an error of code [Corrupt].
func ParseStatus(data []byte) *Error {
	var s Status
	if err := json.Unmarshal(data, &s); err != nil || s.Kind != "Status" || s.Status != "Failure" {
		return &Error{Code: Corrupt, Op: "read a Status", Message: "got " + excerpt(data), Err: err}
	}
	return s.Err()
}

// Err returns s as an error that the peer sent, with its exact reason, code and details.
func (s Status) Err() *Error {
	e := &Error{Code: s.code(), Remote: true, Status: s.Code, Reason: s.Reason, Message: s.Message, Continue: s.Metadata.Continue}
	if d := s.Details; d != nil {
		e.Details = &Details{
			Name: d.Name, Group: d.Group, Kind: d.Kind, UID: d.UID,
			Causes: d.Causes, RetryAfter: seconds(d.RetryAfterSeconds),
		}
	}
	return e
}

// code reads the reason first, because one HTTP status serves several, and falls back on the status for reasons it doesn't know.
func (s Status) code() Code {
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			switch c.Reason {
			case CauseTooLarge:
				return NotYet
			case causeTooSlow:
				return TooSlow
			}
		}
	}
	switch s.Reason {
	case "Expired", "Gone":
		return Expired
	case "Conflict":
		return Conflict
	case "AlreadyExists":
		return AlreadyExists
	case "Timeout", "ServerTimeout", "TooManyRequests", "ServiceUnavailable":
		return Unavailable
	case "Invalid", "BadRequest":
		return Invalid
	case "NotFound":
		return NotFound
	case "Unauthorized":
		return Unauthorized
	case "Forbidden":
		return Forbidden
	case "NotAcceptable", "UnsupportedMediaType", "MethodNotAllowed":
		return Unsupported
	}
	return CodeOfHTTP(s.Code)
}

// CodeOfHTTP returns what an HTTP status alone tells.
func CodeOfHTTP(status int) Code {
	switch status {
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusForbidden:
		return Forbidden
	case http.StatusNotFound:
		return NotFound
	case http.StatusConflict:
		return Conflict
	case http.StatusGone:
		return Expired
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusUpgradeRequired,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return Unsupported
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Unavailable
	}
	if status >= 400 && status < 500 {
		return Invalid
	}
	return Unknown
}

// excerpt quotes the beginning of what a peer sent, for an error message.
func excerpt(data []byte) string {
	const most = 120
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
