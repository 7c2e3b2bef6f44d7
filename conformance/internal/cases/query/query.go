package query

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// A response is a response to a QUERY.
type response struct {
	status int
	header http.Header
	body   string
}

// newSender returns a function that sends requests for lists. It skips the case if the server does
// not support QUERY.
func newSender(e *harness.Env) func(method, query, contentType, body string) response {
	e.Helper()
	c := e.HTTPClient()
	send := func(method, query, contentType, body string) response {
		e.Helper()
		r, err := http.NewRequestWithContext(e.Context(), method, e.WatchURL(query).String(), strings.NewReader(body))
		if err != nil {
			e.Fatal(err)
		}
		if r.Header = e.WithHeader(http.Header{}).Clone(); contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		got, err := c.Do(r)
		if err != nil {
			e.Fatal(err)
		}
		defer got.Body.Close()
		data, err := io.ReadAll(got.Body)
		if err != nil {
			e.Fatal(err)
		}
		return response{got.StatusCode, got.Header, string(data)}
	}
	if send(http.MethodGet, "limit=1", "", "").header.Get("Accept-Query") == "" {
		e.Skipf("the server does not support QUERY: its lists have no Accept-Query")
	}
	return send
}

func list(e *harness.Env) {
	for _, name := range []string{"a", "b", "c"} {
		e.Put(name, "on", name)
	}
	send := newSender(e)
	const selector = "on in (a,c)"
	want := send(http.MethodGet, harness.LabelSelector(selector)+"&limit=1000", "", "")
	for _, q := range []struct{ query, contentType, body string }{
		{"", transport.QueryType, harness.LabelSelector(selector) + "&limit=1000"},
		{"limit=1000", transport.QueryType + "; charset=UTF-8", harness.LabelSelector(selector)},
	} {
		got := send(transport.MethodQuery, q.query, q.contentType, q.body)
		if got.status != want.status || got.body != want.body {
			e.Errorf("QUERY with %s: got %d %s, want %d %s",
				q.contentType, got.status, got.body, want.status, want.body)
		}
	}
}

func watch(e *harness.Env) {
	newSender(e)
	e.Put("a", "on", "yes")
	e.Put("b", "on", "no")
	values := "yes"
	for n := range 2000 {
		values += fmt.Sprintf(",value-%d", n)
	}
	s := e.DialRequest(harness.LabelSelector("on in ("+values+")")+harness.InitialEvents,
		transport.Request{Method: transport.MethodQuery})
	s.Want("ADDED a", "BOOKMARK")
	e.Put("b", "on", "value-7")
	e.Put("a", "on", "no")
	s.Want("ADDED b", "DELETED a")
}

func refused(e *harness.Env) {
	send := newSender(e)
	for _, q := range []struct {
		query, contentType, body string
		want                     int
	}{
		{"", "", "limit=1", http.StatusBadRequest},
		{"", transport.QueryType, "limit=%zz", http.StatusBadRequest},
		{"", transport.QueryType, "labelSelector=" + url.QueryEscape("a in ("), http.StatusBadRequest},
		{"", "text/plain", "limit=1", http.StatusUnsupportedMediaType},
	} {
		got := send(transport.MethodQuery, q.query, q.contentType, q.body)
		if got.status != q.want {
			e.Errorf("QUERY with %q and %s: got %d, want %d: %s", q.contentType, q.body, got.status, q.want, got.body)
		}
		if q.want == http.StatusUnsupportedMediaType && got.header.Get("Accept-Query") == "" {
			e.Errorf("QUERY with %q: the response has no Accept-Query", q.contentType)
		}
	}
}
