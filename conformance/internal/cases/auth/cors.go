package auth

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
)

func wsNoOrigin(e *harness.Env) {
	if got := e.WatchRaw("", "Origin", "").WantAccepted().Get("Sec-Websocket-Accept"); got != harness.SampleAccept {
		e.Errorf("got Sec-WebSocket-Accept %q, want %q", got, harness.SampleAccept)
	}
}

// similarOrigins returns foreign origins that resemble own, the origin of a server without a port.
func similarOrigins(own string) []string {
	scheme, host, _ := strings.Cut(own, "://")
	other := map[string]string{"http": "https", "https": "http"}[scheme]
	return []string{
		"https://evil.example", scheme + "://evil.example", own + ".evil.example", scheme + "://evil" + host,
		scheme + "://sub." + host,
		own + ":8443", own + "@evil.example", own + "#.evil.example", own + ", https://evil.example",
		"https://evil.example, " + own,
		other + "://" + host + ":1", host, scheme + ":" + host, "*", "https://*", "",
	}
}

// foreignOrigins returns origins that a server must refuse if it allows allowedOrigin only.
func foreignOrigins() []string {
	return append(similarOrigins(allowedOrigin), "http://app.example.com", "null")
}

func wsForeignOrigin(e *harness.Env) {
	refuse := func(e *harness.Env, header ...string) {
		e.Helper()
		e.WatchRaw("", header...).WantRefused(http.StatusForbidden, "Forbidden")
	}
	refuse(e, "Origin", "https://evil.example")
	for _, origin := range similarOrigins("http://things.example.com") {
		if origin != "" { // an empty value would omit the header
			refuse(e, "Host", "things.example.com", "Origin", origin)
		}
	}
	for host, origin := range map[string]string{
		"things.example.com:8001": "http://things.example.com:8002",
		"things.example.com:8080": "http://things.example.com",
		"[::1]:8001":              "http://[::2]:8001",
		"127.0.0.1:8001":          "http://127.0.0.2:8001",
		"127.0.0.1":               "http://localhost",
	} {
		refuse(e, "Host", host, "Origin", origin)
	}
	own := "http://" + e.URL.Host
	refuse(e, "Origin", own, "Origin", own) // two Origin headers are invalid
	if !e.Supports(harness.Configurable) {
		return
	}
	pages := harness.NewEnv(e.T, e.Target, e.Variant, corsSetup, e.Timeline)
	pages.WatchRaw("", "Origin", allowedOrigin).WantAccepted()
	pages.WatchRaw("", "Origin", "http://"+pages.URL.Host).WantAccepted()
	for _, origin := range foreignOrigins() {
		if origin != "" {
			refuse(pages, "Origin", origin)
		}
	}
}

func wsNullOrigin(e *harness.Env) {
	for _, host := range []string{e.URL.Host, "null"} {
		e.WatchRaw("", "Host", host, "Origin", "null").WantHandshakeRefused(http.StatusForbidden, "Forbidden")
	}
}

func sameOrigin(e *harness.Env) {
	e.WatchRaw("", "Origin", "http://"+e.URL.Host).WantAccepted()
	for _, test := range [][2]string{
		{"things.example.com", "http://things.example.com"},
		{"things.example.com:80", "http://things.example.com"},
		{"things.example.com", "http://things.example.com:80"},
		{"things.example.com:8001", "http://things.example.com:8001"},
		{"Things.EXAMPLE.com:8001", "http://things.example.com:8001"},
		{"things.example.com:8001", "HTTP://Things.example.COM:8001"},
		{"[::1]:8001", "http://[::1]:8001"},
		{"[::1]", "http://[::1]"},
		{"[2001:DB8::A]:8001", "http://[2001:db8::a]:8001"},
	} {
		if e.WatchRaw("", "Host", test[0]).Status >= http.StatusBadRequest {
			continue // a server may refuse unknown hosts
		}
		e.WatchRaw("", "Host", test[0], "Origin", test[1]).WantAccepted()
	}
}

// wantAllowed checks that a page of the given origin may read the response to a request with
// credentials.
func wantAllowed(a *harness.Response, origin string) {
	a.Helper()
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true",
	} {
		if got := a.Headers.Values(name); !slices.Equal(got, []string{want}) {
			a.Errorf("status %d: got %s %q, want exactly one value, %q", a.Status, name, got, want)
		}
	}
	a.WantVary("Origin")
}

// wantUnreadable checks that the response has no header that allows a page of the given origin to
// read the response.
func wantUnreadable(a *harness.Response, origin string) {
	a.Helper()
	for name, values := range a.Headers {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Access-Control-Allow-") {
			a.Errorf("status %d for origin %q: got %s %q, want no such header", a.Status, origin, name, values)
		}
	}
	a.WantVary("Origin")
}

func corsPreflight(e *harness.Env) {
	headers := []string{"authorization", "last-event-id", "content-type"}
	preflight := func(origin, method string) *harness.Response {
		return e.RequestOn(e.Connect(e.ALPN()...), "OPTIONS", "?watch=1", []string{
			"Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers",
			strings.Join(headers, ","),
		})
	}
	for _, method := range []string{"GET", "DELETE"} {
		a := preflight(allowedOrigin, method)
		a.WantStatus(http.StatusNoContent)
		wantAllowed(a, allowedOrigin)
		if got := a.Headers.Values("Access-Control-Allow-Methods"); !harness.Contains(got, method) {
			e.Errorf("got Access-Control-Allow-Methods %q, want it to include %s", got, method)
		}
		for _, name := range headers {
			if got := a.Headers.Values("Access-Control-Allow-Headers"); !harness.Contains(got, name) {
				e.Errorf("got Access-Control-Allow-Headers %q, want it to include %s", got, name)
			}
		}
	}
	for _, origin := range foreignOrigins() {
		if origin != "" {
			wantUnreadable(preflight(origin, "GET"), origin)
		}
	}
}

func corsSimple(e *harness.Env) {
	responses := func(origin string) map[int][]*harness.Response {
		with := func(token string) []string { return append(bearer(token), "Origin", origin) }
		return map[int][]*harness.Response{
			http.StatusOK: {e.WatchRaw("", with(harness.Allowed)...), e.ListRaw("",
				with(harness.Allowed)...)},
			http.StatusBadRequest: {e.WatchRaw("resourceVersion=abc", with(harness.Allowed)...), e.ListRaw("limit=x",
				with(harness.Allowed)...)},
			http.StatusUnauthorized: {e.WatchRaw("", with("nobody")...)},
			http.StatusForbidden:    {e.ListRaw("", with(harness.Denied)...)},
		}
	}
	for status, all := range responses(allowedOrigin) {
		for _, a := range all {
			a.WantStatus(status)
			wantAllowed(a, allowedOrigin)
		}
	}
	for _, origin := range []string{"https://evil.example", allowedOrigin + ".evil.example", "null", ""} {
		for _, all := range responses(origin) {
			for _, a := range all {
				wantUnreadable(a, origin)
			}
		}
	}
	for _, origin := range foreignOrigins() {
		wantUnreadable(e.ListRaw("", append(bearer(harness.Allowed), "Origin", origin)...), origin)
	}
}

func corsEventSource(e *harness.Env) {
	header := []string{
		"Accept", "text/event-stream", "Cache-Control", "no-cache", "Origin", allowedOrigin, "Cookie", "session=1",
	}
	first, second := e.Put("a"), e.Put("b")
	for _, test := range []struct {
		header []string
		want   string
	}{
		{header, first.String()},
		{append(slices.Clone(header), "Last-Event-ID", first.String()), second.String()},
	} {
		a := e.WatchRaw("", test.header...)
		a.WantStatus(http.StatusOK)
		wantAllowed(a, allowedOrigin)
		if got := a.Headers.Get("Content-Type"); got != "text/event-stream" {
			e.Errorf("got Content-Type %q, want text/event-stream", got)
		}
		for got := ""; !strings.HasPrefix(got, "data:"); {
			line, err := a.Body.ReadString('\n')
			if got = strings.TrimSpace(line); err != nil {
				e.Fatalf("got %q, %v; want an event", got, err)
			}
			if id, found := strings.CutPrefix(got, "id:"); found && strings.TrimSpace(id) != test.want {
				e.Errorf("got id %s, want %s", id, test.want)
			}
		}
	}
	a := e.WatchRaw("", "Accept", "text/event-stream", "Origin", "https://evil.example")
	wantUnreadable(a, "https://evil.example")
}
