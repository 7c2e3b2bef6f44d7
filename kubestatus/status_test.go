package kubestatus_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
)

// allCodes returns all codes. It stops at the first number without a name.
func allCodes() []listwatch.Code {
	var codes []listwatch.Code
	for c := listwatch.Unknown; !strings.HasPrefix(c.Error(), "code "); c++ {
		codes = append(codes, c)
	}
	return codes
}

func statusJSON(t testing.TB, err error) []byte {
	t.Helper()
	data, failed := json.Marshal(kubestatus.Of(err))
	if failed != nil {
		t.Fatal(failed)
	}
	return data
}

func TestEveryCodeSurvivesTheWire(t *testing.T) {
	codes := allCodes()
	if len(codes) < 13 {
		t.Fatalf("found %d codes, want at least 13", len(codes))
	}
	for _, code := range codes {
		want := code
		if code == listwatch.Corrupt {
			want = listwatch.Unknown // the receiver treats a server's Corrupt as an internal error
		}
		data := statusJSON(t, &listwatch.Error{Code: code, Message: "m"})
		got := kubestatus.Parse(data)
		if got.Code != want || !got.Remote || got.Message != "m" {
			t.Errorf("%v was parsed as %v, remote %v, message %q from %s",
				code, got.Code, got.Remote, got.Message, data)
		}
	}
}

func TestStatusMatchesKubernetes(t *testing.T) {
	for _, c := range []struct {
		err  *listwatch.Error
		want string
	}{
		{
			&listwatch.Error{
				Code: listwatch.NotFound, Message: `pods "a" not found`,
				Details: &listwatch.Details{Name: "a", Kind: "pods"},
			},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"a\" not found","reason":"NotFound","details":{"name":"a","kind":"pods"},"code":404}`,
		},
		{
			&listwatch.Error{Code: listwatch.Expired, Message: "too old resource version: 1 (2)"},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}`,
		},
		{
			&listwatch.Error{Code: listwatch.NotYet, Message: "Too large resource version: 9, current: 1"},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Too large resource version: 9, current: 1","reason":"Timeout",` +
				`"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`,
		},
		{
			&listwatch.Error{
				Code: listwatch.Unavailable, Message: "drain",
				Details: &listwatch.Details{RetryAfter: 1500 * time.Millisecond},
			},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"drain","reason":"ServiceUnavailable","details":{"retryAfterSeconds":2},"code":503}`,
		},
	} {
		if diff := cmp.Diff(c.want, string(statusJSON(t, c.err))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.err, diff)
		}
	}
}

func TestUnknownStatusSurvivesTheRoundTrip(t *testing.T) {
	const sent = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"tea","reason":"Teapot",` +
		`"details":{"name":"n","group":"g","kind":"k","uid":"u","causes":[{"reason":"r","message":"m","field":"f"}],"retryAfterSeconds":7},"code":418}`
	e := kubestatus.Parse([]byte(sent))
	if e.Code != listwatch.Invalid || e.Reason != "Teapot" || e.RetryAfter() != 7*time.Second {
		t.Errorf("got %+v, want code Invalid, reason Teapot and a RetryAfter of 7s", e)
	}
	if diff := cmp.Diff(sent, string(statusJSON(t, e))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInvalidWithStatus422HasReasonInvalid(t *testing.T) {
	if s := kubestatus.Of(&listwatch.Error{Code: listwatch.Invalid, Status: 422}); s.Reason != "Invalid" {
		t.Errorf("got reason %q, want Invalid", s.Reason)
	}
	if s := kubestatus.Of(&listwatch.Error{Code: listwatch.Invalid}); s.Reason != "BadRequest" {
		t.Errorf("got reason %q, want BadRequest", s.Reason)
	}
}

func TestParseStatusPrefersReasonToCode(t *testing.T) {
	for status, want := range map[string]listwatch.Code{
		`"reason":"Expired","code":410`:         listwatch.Expired,
		`"reason":"Gone","code":410`:            listwatch.Expired,
		`"code":410`:                            listwatch.Expired,
		`"reason":"AlreadyExists","code":409`:   listwatch.AlreadyExists,
		`"reason":"Conflict","code":409`:        listwatch.Conflict,
		`"reason":"Timeout","code":504`:         listwatch.Unavailable,
		`"reason":"TooManyRequests","code":429`: listwatch.Unavailable,
		`"reason":"Invalid","code":422`:         listwatch.Invalid,
		`"reason":"NotFound"`:                   listwatch.NotFound,
		`"reason":"Unauthorized"`:               listwatch.Unauthorized,
		`"reason":"Forbidden"`:                  listwatch.Forbidden,
		`"reason":"NotAcceptable"`:              listwatch.Unsupported,
		`"reason":"UnsupportedMediaType"`:       listwatch.Unsupported,
		`"reason":"MethodNotAllowed"`:           listwatch.Unsupported,
		`"reason":"InternalError","code":500`:   listwatch.Unknown,
		`"reason":"SomeFutureReason"`:           listwatch.Unknown,
		`"code":401`:                            listwatch.Unauthorized,
		`"code":403`:                            listwatch.Forbidden,
		`"code":404`:                            listwatch.NotFound,
		`"code":409`:                            listwatch.Conflict,
		`"code":406`:                            listwatch.Unsupported,
		`"code":502`:                            listwatch.Unavailable,
		`"code":418`:                            listwatch.Invalid,
		`"details":{"causes":[{"reason":"TooSlow"}]},"reason":"TooManyRequests","code":429`:         listwatch.TooSlow,
		`"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]},"reason":"Timeout","code":504`: listwatch.NotYet,
	} {
		got := kubestatus.Parse([]byte(`{"kind":"Status","status":"Failure",` + status + `}`))
		if got.Code != want {
			t.Errorf("%s: got %v, want %v", status, got.Code, want)
		}
	}
}

func TestParseStatusOfOtherDataIsCorrupt(t *testing.T) {
	for _, data := range []string{
		"", "null", "[]", "<html>502 Bad Gateway</html>", `{"kind":"Pod"}`, `{"kind":"Status"}`,
		`{"kind":"Status","status":"Success"}`, `{"kind":"Status","status":"Failure","code":"410"}`,
		strings.Repeat("é", 1000),
	} {
		e := kubestatus.Parse([]byte(data))
		if e.Code != listwatch.Corrupt || e.Remote || len(e.Message) > 600 {
			t.Errorf("%.40q: got %v, want a short local error of code Corrupt", data, e)
		}
	}
}

func TestStatusOfAForeignErrorIsInternal(t *testing.T) {
	s := kubestatus.Of(io.ErrClosedPipe)
	if s.Code != http.StatusInternalServerError || s.Reason != "InternalError" || s.Message != "internal error" {
		t.Errorf("got %+v, want an InternalError without the text of the error", s)
	}
}

func TestStatusMessageIncludesTheCause(t *testing.T) {
	_, err := listwatch.ParseLabelSelector("!!")
	if s := kubestatus.Of(err); !strings.Contains(s.Message, `"!!"`) ||
		!strings.Contains(s.Message, "expected a label key") {
		t.Errorf("got message %q, want the selector and the expected token", s.Message)
	}
}

func TestStatusNumbersAreLimited(t *testing.T) {
	e := kubestatus.Parse(
		[]byte(`{"kind":"Status","status":"Failure","code":99999,"details":{"retryAfterSeconds":9223372036854775807}}`))
	if got := e.HTTPStatus(); got != http.StatusInternalServerError {
		t.Errorf("got HTTP status %d, want 500", got)
	}
	if e.RetryAfter() < 24*time.Hour {
		t.Errorf("got a wait of %v, want a very long one", e.RetryAfter())
	}
	if s := kubestatus.Of(e); s.Details.RetryAfterSeconds < int(24*time.Hour/time.Second) {
		t.Errorf("got retryAfterSeconds %d, want a large number", s.Details.RetryAfterSeconds)
	}
	e = kubestatus.Parse([]byte(`{"kind":"Status","status":"Failure","code":503,"details":{"retryAfterSeconds":-5}}`))
	if e.RetryAfter() != 0 {
		t.Errorf("got a wait of %v, want 0", e.RetryAfter())
	}
	long := kubestatus.Of(&listwatch.Error{Details: &listwatch.Details{RetryAfter: math.MaxInt64}})
	if long.Details.RetryAfterSeconds <= 0 {
		t.Errorf("got retryAfterSeconds %d, want a large number", long.Details.RetryAfterSeconds)
	}
}

func TestErrorTextHasOpCodeMessageAndCause(t *testing.T) {
	cause := errors.New("cause")
	for want, e := range map[string]*listwatch.Error{
		"unknown":                  {},
		"expired: m":               {Code: listwatch.Expired, Message: "m"},
		"watch: corrupt: m: cause": {Code: listwatch.Corrupt, Op: "watch", Message: "m", Err: cause},
		"watch: corrupt: cause":    {Code: listwatch.Corrupt, Op: "watch", Err: cause},
		"code 200":                 {Code: 200},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	e := error(&listwatch.Error{Code: listwatch.Expired, Err: cause})
	for target, want := range map[error]bool{listwatch.Expired: true, listwatch.Invalid: false, cause: true} {
		if errors.Is(e, target) != want {
			t.Errorf("errors.Is finds %v: %t, want %t", target, !want, want)
		}
	}
	for err, want := range map[error]listwatch.Code{e: listwatch.Expired, cause: listwatch.Unknown} {
		if got := listwatch.CodeOf(err); got != want {
			t.Errorf("%v has code %v, want %v", err, got, want)
		}
	}
	if got := listwatch.AsError(nil); got != nil {
		t.Errorf("AsError(nil) is %v, want nil", got)
	}
	if got := (&listwatch.Error{Code: 200}).HTTPStatus(); got != http.StatusInternalServerError {
		t.Errorf("an unknown code has HTTP status %d, want 500", got)
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(`{"kind":"Status","status":"Failure","reason":"Expired","code":410}`))
	f.Add(
		[]byte(
			`{"kind":"Status","status":"Failure","details":{"causes":[{"reason":"TooSlow"}],"retryAfterSeconds":-1},"code":-1}`))
	f.Add([]byte(`{"kind":"Status","status":"Success"}`))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := kubestatus.Parse(data)
		if status := e.HTTPStatus(); status < 400 || status > 599 {
			t.Fatalf("got HTTP status %d, want 400 to 599", status)
		}
		if e.RetryAfter() < 0 {
			t.Fatalf("got a wait of %v", e.RetryAfter())
		}
		again := kubestatus.Parse(statusJSON(t, e))
		if e.Remote && again.Code != e.Code {
			t.Fatalf("%v came back as %v", e.Code, again.Code)
		}
	})
}
