package testkit

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Do sends a request through tr and returns the response. header holds names and values in turn.
// The body of the response is closed when the test has finished.
func Do(t testing.TB, tr http.RoundTripper, method, url, body string, header ...string) *http.Response {
	t.Helper()
	r := Must(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res := Must(tr.RoundTrip(r))(t)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// Get is like Do with the default transport, method GET and no body.
func Get(t testing.TB, url string, header ...string) *http.Response {
	t.Helper()
	return Do(t, http.DefaultTransport, http.MethodGet, url, "", header...)
}

// Body reads the rest of the body of res, and closes it.
func Body(t testing.TB, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	return string(Must(io.ReadAll(res.Body))(t))
}
