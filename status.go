package listwatch

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A Status is the wire form of an error, as in Kubernetes (metav1.Status): the body of an HTTP
// response, or the object of an ERROR event. The Kubernetes API also responds to some deletes with
// a Status of "Success".
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

// StatusMetadata is the metadata of a [Status]. Kubernetes gives it the members of a list's
// metadata; only the continue token is used.
type StatusMetadata struct {
	Continue string `json:"continue,omitempty"`
}

// StatusDetails describes the object and the causes of a [Status].
type StatusDetails struct {
	Name              string  `json:"name,omitempty"`
	Group             string  `json:"group,omitempty"`
	Kind              string  `json:"kind,omitempty"`
	UID               string  `json:"uid,omitempty"`
	Causes            []Cause `json:"causes,omitempty"`
	RetryAfterSeconds int     `json:"retryAfterSeconds,omitempty"`
}

// CauseTooLarge is the reason of the cause that distinguishes [NotYet] from other timeouts.
const CauseTooLarge = "ResourceVersionTooLarge"

// The reasons of causes about one field, as in Kubernetes (metav1.CauseType).
const (
	CauseInvalid   = "FieldValueInvalid"
	CauseRequired  = "FieldValueRequired"
	CauseForbidden = "FieldValueForbidden"
)

// causeTooSlow is the reason of the cause that distinguishes [TooSlow] from other 429s.
// Kubernetes does not define it.
const causeTooSlow = "TooSlow"

// StatusOf converts err to the Status that a client receives. All servers of this module use it, so
// it decides what of an error is public: of the [*Error] that err is or wraps, the fields that say
// so. An error that is not an *Error becomes a Status with the reason InternalError and the message
// "internal error". Everything else is for the operator of the server, whom the hook Refused of
// watchserver.Trace shows the whole error.
func StatusOf(err error) Status {
	e := AsError(err)
	s := Status{
		Kind: "Status", APIVersion: "v1", Status: "Failure", Reason: e.Reason, Code: e.HTTPStatus(),
		Message: e.publicMessage(),
	}
	switch {
	case s.Reason != "":
	case e.Code == Invalid && s.Code == http.StatusUnprocessableEntity:
		s.Reason = "Invalid" // Kubernetes' reason of this status
	case int(e.Code) < len(codes):
		s.Reason = codes[e.Code].reason
	}
	s.Metadata.Continue = e.Continue
	s.Details = statusDetails(e, s.Message)
	return s
}

// publicMessage returns what a client is told about e. It never contains the text of e.Err, which
// may name hosts, files, users or statements of the server.
func (e *Error) publicMessage() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Code == Unknown:
		return "internal error"
	}
	return e.Code.Error()
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

// seconds converts n to a Duration. It limits n to the greatest value that a Duration can hold.
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

// ParseStatus parses the JSON of a Status and returns the error that it describes, with Remote
// set. If data is not a Status with "status":"Failure", it returns an error of code [Corrupt].
func ParseStatus(data []byte) *Error {
	var s Status
	if err := json.Unmarshal(data, &s); err != nil || s.Kind != "Status" || s.Status != "Failure" {
		return &Error{Code: Corrupt, Op: "parse a Status", Message: "got " + excerpt(data), Err: err}
	}
	return s.Err()
}

// Err returns the error that s describes: it has the same reason, status and details, and Remote
// is set.
func (s Status) Err() *Error {
	e := &Error{
		Code: s.code(), Remote: true, Status: s.Code, Reason: s.Reason, Message: s.Message,
		Continue: s.Metadata.Continue,
	}
	if d := s.Details; d != nil {
		e.Details = &Details{
			Name: d.Name, Group: d.Group, Kind: d.Kind, UID: d.UID,
			Causes: d.Causes, RetryAfter: seconds(d.RetryAfterSeconds),
		}
	}
	return e
}

// code derives the code from the causes and the reason, because several reasons share an HTTP
// status. If the reason is unknown, code uses the HTTP status.
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

// CodeOfHTTP returns the Code that fits an HTTP status.
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
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType,
		http.StatusUpgradeRequired,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return Unsupported
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
		return Unavailable
	}
	switch {
	case status >= 400 && status < 500:
		return Invalid
	case status >= 520 && status < 600:
		// No standard defines these statuses. Proxies and content delivery networks send them if
		// they cannot reach the server.
		return Unavailable
	}
	return Unknown
}

// excerpt returns the beginning of data, quoted, for an error message.
func excerpt(data []byte) string {
	const most = 120
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
