// Package kubestatus converts errors to their form on the wire, which is the Status of Kubernetes,
// and back.
package kubestatus

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
)

// A Status is the wire form of an error, as in Kubernetes (metav1.Status): the body of an HTTP
// response, or the object of an ERROR event. The Kubernetes API also responds to some deletes with
// a Status of "Success".
type Status struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	// Metadata has the members of the metadata of a list in Kubernetes. Only the continue token is
	// used.
	Metadata struct {
		Continue string `json:"continue,omitempty"`
	} `json:"metadata"`
	Status  string   `json:"status"`
	Message string   `json:"message,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Details *Details `json:"details,omitempty"`
	Code    int      `json:"code,omitempty"`
}

// Details describes the object and the causes of a [Status].
type Details struct {
	Name              string            `json:"name,omitempty"`
	Group             string            `json:"group,omitempty"`
	Kind              string            `json:"kind,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Causes            []listwatch.Cause `json:"causes,omitempty"`
	RetryAfterSeconds int               `json:"retryAfterSeconds,omitempty"`
}

// causeTooSlow is the reason of the cause that distinguishes [listwatch.TooSlow] from other 429s.
// Kubernetes does not define it.
const causeTooSlow = "TooSlow"

// reasons holds the default reason of each Code.
var reasons = [...]string{
	listwatch.Unknown:       "InternalError",
	listwatch.Invalid:       "BadRequest",
	listwatch.Expired:       "Expired",
	listwatch.NotYet:        "Timeout",
	listwatch.Unsupported:   "NotAcceptable",
	listwatch.TooSlow:       "TooManyRequests",
	listwatch.Unavailable:   "ServiceUnavailable",
	listwatch.Corrupt:       "InternalError",
	listwatch.NotFound:      "NotFound",
	listwatch.Conflict:      "Conflict",
	listwatch.AlreadyExists: "AlreadyExists",
	listwatch.Unauthorized:  "Unauthorized",
	listwatch.Forbidden:     "Forbidden",
}

// Of converts err to the Status that a client receives. All servers of this module use it, so it
// decides which parts of an error are public. If err is or wraps a [*listwatch.Error], they are the
// fields that the documentation of [listwatch.Error] lists. Any other error becomes a Status with
// the reason InternalError and the message "internal error". Everything else is for the operator of
// the server: the hook Refused of watchserver.Trace receives the whole error.
func Of(err error) Status {
	e := listwatch.AsError(err)
	s := Status{
		Kind: "Status", APIVersion: "v1", Status: "Failure", Reason: e.Reason, Code: e.HTTPStatus(),
		Message: publicMessage(e),
	}
	switch {
	case s.Reason != "":
	case e.Code == listwatch.Invalid && s.Code == http.StatusUnprocessableEntity:
		s.Reason = "Invalid" // Kubernetes' reason of this status
	case int(e.Code) < len(reasons):
		s.Reason = reasons[e.Code]
	}
	s.Metadata.Continue = e.Continue
	s.Details = statusDetails(e, s.Message)
	return s
}

// publicMessage returns the message about e that a client receives. It never contains the text of
// e.Err, which may name hosts, files, users or statements of the server.
func publicMessage(e *listwatch.Error) string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Code == listwatch.Unknown:
		return "internal error"
	}
	return e.Code.Error()
}

func statusDetails(e *listwatch.Error, message string) *Details {
	var d Details
	if e.Details != nil {
		d = Details{
			Name: e.Details.Name, Group: e.Details.Group, Kind: e.Details.Kind, UID: e.Details.UID,
			Causes: e.Details.Causes, RetryAfterSeconds: wholeSeconds(e.Details.RetryAfter),
		}
	}
	switch {
	case len(d.Causes) > 0:
	case e.Code == listwatch.TooSlow:
		d.Causes = []listwatch.Cause{{Reason: causeTooSlow, Message: message}}
	case e.Code == listwatch.NotYet:
		d.Causes = []listwatch.Cause{{Reason: listwatch.CauseTooLarge, Message: "Too large resource version"}}
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

// Parse parses the JSON of a Status and returns the error that it describes, with Remote set. If
// data is not a Status with "status":"Failure", it returns an error of code [listwatch.Corrupt].
func Parse(data []byte) *listwatch.Error {
	var s Status
	if err := json.Unmarshal(data, &s); err != nil || s.Kind != "Status" || s.Status != "Failure" {
		return &listwatch.Error{
			Code: listwatch.Corrupt, Op: "parse a Status", Message: "got " + excerpt(data), Err: err,
		}
	}
	return s.Err()
}

// Err returns the error that s describes: it has the same reason, status and details, and Remote
// is set.
func (s Status) Err() *listwatch.Error {
	e := &listwatch.Error{
		Code: s.code(), Remote: true, Status: s.Code, Reason: s.Reason, Message: s.Message,
		Continue: s.Metadata.Continue,
	}
	if d := s.Details; d != nil {
		e.Details = &listwatch.Details{
			Name: d.Name, Group: d.Group, Kind: d.Kind, UID: d.UID,
			Causes: d.Causes, RetryAfter: seconds(d.RetryAfterSeconds),
		}
	}
	return e
}

// code derives the code from the causes and the reason, because several reasons share an HTTP
// status. If the reason is unknown, code uses the HTTP status.
func (s Status) code() listwatch.Code {
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			switch c.Reason {
			case listwatch.CauseTooLarge:
				return listwatch.NotYet
			case causeTooSlow:
				return listwatch.TooSlow
			}
		}
	}
	switch s.Reason {
	case "Expired", "Gone":
		return listwatch.Expired
	case "Conflict":
		return listwatch.Conflict
	case "AlreadyExists":
		return listwatch.AlreadyExists
	case "Timeout", "ServerTimeout", "TooManyRequests", "ServiceUnavailable":
		return listwatch.Unavailable
	case "Invalid", "BadRequest":
		return listwatch.Invalid
	case "NotFound":
		return listwatch.NotFound
	case "Unauthorized":
		return listwatch.Unauthorized
	case "Forbidden":
		return listwatch.Forbidden
	case "NotAcceptable", "UnsupportedMediaType", "MethodNotAllowed":
		return listwatch.Unsupported
	}
	return CodeOfHTTP(s.Code)
}

// CodeOfHTTP returns the Code that fits an HTTP status.
func CodeOfHTTP(status int) listwatch.Code {
	switch status {
	case http.StatusUnauthorized:
		return listwatch.Unauthorized
	case http.StatusForbidden:
		return listwatch.Forbidden
	case http.StatusNotFound:
		return listwatch.NotFound
	case http.StatusConflict:
		return listwatch.Conflict
	case http.StatusGone:
		return listwatch.Expired
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType,
		http.StatusUpgradeRequired,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return listwatch.Unsupported
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
		return listwatch.Unavailable
	}
	switch {
	case status >= 400 && status < 500:
		return listwatch.Invalid
	case status >= 520 && status < 600:
		// No standard defines these statuses. Proxies and content delivery networks send them if
		// they cannot reach the server.
		return listwatch.Unavailable
	}
	return listwatch.Unknown
}

// excerpt returns the beginning of data, quoted, for an error message.
func excerpt(data []byte) string {
	const most = 120
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
