package transport

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/encodingtest"
)

func response(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func TestResponseError(t *testing.T) {
	const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}`
	page := "<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body><h1>oops</h1></body></html>"
	tests := []struct {
		name    string
		resp    *http.Response
		code    listwatch.Code
		status  int
		message string
		after   time.Duration
	}{
		{"a Status", response(410, expired), listwatch.Expired, 410, "too old", 0},
		{
			"a Status without a code", response(403, `{"kind":"Status","status":"Failure","message":"no"}`),
			listwatch.Forbidden, 403, "no", 0,
		},
		{
			"a page with a title", response(502, page), listwatch.Unavailable, 502,
			"the server responded with 502 Bad Gateway: 502 Bad Gateway", 0,
		},
		{
			"a page without one", response(404, "<style>p{}</style><p>not &amp;<br>here</p>"), listwatch.NotFound, 404,
			"the server responded with 404 Not Found: not & here", 0,
		},
		{
			"text", response(401, " who\r\nare\tyou\x00? \xff"), listwatch.Unauthorized, 401,
			"the server responded with 401 Unauthorized: who are you ?", 0,
		},
		{
			"an empty body", response(500, ""), listwatch.Unknown, 500,
			"the server responded with 500 Internal Server Error", 0,
		},
		{
			"incomplete JSON", response(400, `{"kind":"St`), listwatch.Invalid, 400,
			`the server responded with 400 Bad Request: {"kind":"St`, 0,
		},
		{
			"JSON of another kind", response(405, `{"error":"no"}`), listwatch.Unsupported, 405,
			`the server responded with 405 Method Not Allowed: {"error":"no"}`, 0,
		},
		{
			"a redirect without a target", response(304, ""), listwatch.Unsupported, 304,
			"the server responded with 304 Not Modified", 0,
		},
		{
			"Retry-After in seconds", response(429, expired, "Retry-After", "7"), listwatch.Expired, 410, "too old",
			7 * time.Second,
		},
		{
			"Retry-After as a date by the server's clock",
			response(503, "", "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT", "Date", "Fri, 31 Dec 1999 23:59:29 GMT"),
			listwatch.Unavailable, 503, "the server responded with 503 Service Unavailable", 30 * time.Second,
		},
		{
			"Retry-After as a date in the past", response(503, "", "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"),
			listwatch.Unavailable, 503, "the server responded with 503 Service Unavailable", 0,
		},
		{
			"an invalid Retry-After", response(503, "", "Retry-After", "-5"), listwatch.Unavailable, 503,
			"the server responded with 503 Service Unavailable", 0,
		},
		{
			"the longer time of the Status and the header",
			response(429,
				`{"kind":"Status","status":"Failure","message":"m","code":429,"details":{"retryAfterSeconds":9}}`,
				"Retry-After", "2"),
			listwatch.Unavailable, 429, "m", 9 * time.Second,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := ResponseError(tt.resp)
			if e.Code != tt.code || e.Status != tt.status || e.Message != tt.message || e.RetryAfter() != tt.after ||
				!e.Remote {
				t.Errorf("got %v, %d, %q, %v, remote %v; want %v, %d, %q, %v, true",
					e.Code, e.Status, e.Message, e.RetryAfter(), e.Remote, tt.code, tt.status, tt.message, tt.after)
			}
		})
	}
}

func TestResponseErrorLimitsTheBody(t *testing.T) {
	e := ResponseError(response(500, strings.Repeat("long ", 1<<20)))
	if n := len(e.Message); n > 2*maxExcerpt {
		t.Errorf("the message has %d bytes", n)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r, w := io.Pipe()
		defer w.Close()
		e := ResponseError(&http.Response{StatusCode: 503, Header: http.Header{}, Body: r})
		if d := time.Since(start); d != maxErrorWait || e.Code != listwatch.Unavailable {
			t.Errorf("an endless body: got %v after %v", e, d)
		}
	})
}

func FuzzResponseError(f *testing.F) {
	f.Add(500, "<title>x</title>", "3")
	f.Add(410, `{"kind":"Status","code":410}`, "Fri, 31 Dec 1999 23:59:59 GMT")
	f.Add(502, "<script>a<b</script", "99999999999999999999")
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		e := ResponseError(response(status, body, "Retry-After", after))
		if !e.Remote || e.RetryAfter() < 0 {
			t.Errorf("got %#v", e)
		}
	})
}

func TestNoContentIsATypedError(t *testing.T) {
	isNoContent := func(err error) bool {
		e := listwatch.AsError(err)
		return e != nil && e.Remote && e.Status == http.StatusNoContent && errors.Is(err, io.EOF)
	}
	_, err := receive(&http.Response{ProtoMajor: 1, StatusCode: http.StatusNoContent}, &Request{}, 1, nil)
	if !isNoContent(err) {
		t.Errorf("got %v, want a remote error of status 204 that wraps io.EOF", err)
	}
	for _, err := range []error{ResponseError(response(503, "")), io.EOF, nil} {
		if isNoContent(err) {
			t.Errorf("%v looks like a 204", err)
		}
	}
}

// The framing of the request decodes errors, too. Otherwise a new continue token and the cause of a
// timeout would be lost.
func TestResponseErrorUsesTheFraming(t *testing.T) {
	const gone = `{"kind":"Status","metadata":{"continue":"again"},"status":"Failure","reason":"Expired","code":410}`
	const early = `{"kind":"Status","status":"Failure","reason":"Timeout","code":504,
		"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`
	for body, code := range map[string]listwatch.Code{gone: listwatch.Expired, early: listwatch.NotYet} {
		f := encodingtest.Framing{}
		flipped := string(encodingtest.Flip([]byte(body)))
		e := ResponseError(response(410, flipped, "Content-Type", f.MediaType()+"; x=y"), framing.JSON{}, f)
		if e.Code != code || code == listwatch.Expired && e.Continue != "again" {
			t.Errorf("got %+v, want %v", e, code)
		}
		if e := ResponseError(response(410, body, "Content-Type", "application/json"), f); e.Code != code {
			t.Errorf("JSON for a client of another encoding: got %v, want %v", e, code)
		}
	}
}
