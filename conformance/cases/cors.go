package cases

import (
	"net/http"
	"slices"
	"strings"
)

func wsNoOrigin(e *env) {
	if got := e.watch("", "Origin", "").accepted().Get("Sec-Websocket-Accept"); got != sampleAccept {
		e.Errorf("got Sec-WebSocket-Accept %q, want %q", got, sampleAccept)
	}
}

// lookalikes are origins that are not own, though they look a bit like it. own has no port.
func lookalikes(own string) []string {
	scheme, host, _ := strings.Cut(own, "://")
	other := map[string]string{"http": "https", "https": "http"}[scheme]
	return []string{
		"https://evil.example", scheme + "://evil.example", own + ".evil.example", scheme + "://evil" + host, scheme + "://sub." + host,
		own + ":8443", own + "@evil.example", own + "#.evil.example", own + ", https://evil.example", "https://evil.example, " + own,
		other + "://" + host + ":1", host, scheme + ":" + host, "*", "https://*", "",
	}
}

// strangers are origins that a server for page does not let in.
func strangers() []string { return append(lookalikes(page), "http://app.example.com", "null") }

func wsForeignOrigin(e *env) {
	refuse := func(e *env, header ...string) {
		e.Helper()
		e.watch("", header...).refused(http.StatusForbidden, "Forbidden")
	}
	refuse(e, "Origin", "https://evil.example")
	for _, origin := range lookalikes("http://things.example.com") {
		if origin != "" { // that would be none
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
	refuse(e, "Origin", own, "Origin", own) // a request has one
	if !e.can(Configurable) {
		return
	}
	pages := newEnv(e.T, e.target, e.way, forPages, e.log)
	pages.watch("", "Origin", page).accepted()
	pages.watch("", "Origin", "http://"+pages.URL.Host).accepted()
	for _, origin := range strangers() {
		if origin != "" {
			refuse(pages, "Origin", origin)
		}
	}
}

func wsNullOrigin(e *env) {
	for _, host := range []string{e.URL.Host, "null"} {
		e.watch("", "Host", host, "Origin", "null").turnedDown(http.StatusForbidden, "Forbidden")
	}
}

func sameOrigin(e *env) {
	e.watch("", "Origin", "http://"+e.URL.Host).accepted()
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
		if e.watch("", "Host", test[0]).status >= http.StatusBadRequest {
			continue // a server need not go by every name
		}
		e.watch("", "Host", test[0], "Origin", test[1]).accepted()
	}
}

// wantAllowed says that the page may read the answer, with what it sent of credentials.
func (a *answer) wantAllowed(origin string) {
	a.Helper()
	for name, want := range map[string]string{"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true"} {
		if got := a.header.Values(name); !slices.Equal(got, []string{want}) {
			a.Errorf("status %d: got %s %q, want %q, once", a.status, name, got, want)
		}
	}
	a.wantVary("Origin")
}

// wantVary says that caches must know that the answer depends on a header.
func (a *answer) wantVary(name string) {
	a.Helper()
	if !contains(a.header.Values("Vary"), name) {
		a.Errorf("status %d: got Vary %q, want %s in it", a.status, a.header.Values("Vary"), name)
	}
}

// contains reports whether a header that is a list has an item, whatever the case of its letters.
func contains(values []string, item string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(values, ","), ","), func(s string) bool {
		return strings.EqualFold(strings.TrimSpace(s), item)
	})
}

// wantUnreadable says that no page may read the answer.
func (a *answer) wantUnreadable(origin string) {
	a.Helper()
	for name, values := range a.header {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Access-Control-Allow-") {
			a.Errorf("status %d to a page of %q: got %s %q, want none", a.status, origin, name, values)
		}
	}
	a.wantVary("Origin")
}

func corsPreflight(e *env) {
	asked := []string{"authorization", "last-event-id", "content-type"}
	preflight := func(origin, method string) *answer {
		return e.askOn(e.connect(e.protocols()...), "OPTIONS", "?watch=1", []string{
			"Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", strings.Join(asked, ","),
		})
	}
	for _, method := range []string{"GET", "DELETE"} {
		a := preflight(page, method)
		a.wantStatus(http.StatusNoContent)
		a.wantAllowed(page)
		if got := a.header.Values("Access-Control-Allow-Methods"); !contains(got, method) {
			e.Errorf("got Access-Control-Allow-Methods %q, want %s in it", got, method)
		}
		for _, name := range asked {
			if got := a.header.Values("Access-Control-Allow-Headers"); !contains(got, name) {
				e.Errorf("got Access-Control-Allow-Headers %q, want %s in it", got, name)
			}
		}
	}
	for _, origin := range strangers() {
		if origin != "" {
			preflight(origin, "GET").wantUnreadable(origin)
		}
	}
}

func corsSimple(e *env) {
	ask := func(origin string) map[int][]*answer {
		as := func(token string) []string { return append(bearer(token), "Origin", origin) }
		return map[int][]*answer{
			http.StatusOK:           {e.watch("", as(Allowed)...), e.list("", as(Allowed)...)},
			http.StatusBadRequest:   {e.watch("resourceVersion=abc", as(Allowed)...), e.list("limit=x", as(Allowed)...)},
			http.StatusUnauthorized: {e.watch("", as("nobody")...)},
			http.StatusForbidden:    {e.list("", as(Denied)...)},
		}
	}
	for status, answers := range ask(page) {
		for _, a := range answers {
			a.wantStatus(status)
			a.wantAllowed(page)
		}
	}
	for _, origin := range []string{"https://evil.example", page + ".evil.example", "null", ""} {
		for _, answers := range ask(origin) {
			for _, a := range answers {
				a.wantUnreadable(origin)
			}
		}
	}
	for _, origin := range strangers() {
		e.list("", append(bearer(Allowed), "Origin", origin)...).wantUnreadable(origin)
	}
}

func corsEventSource(e *env) {
	header := []string{"Accept", "text/event-stream", "Cache-Control", "no-cache", "Origin", page, "Cookie", "session=1"}
	first, second := e.put("a"), e.put("b")
	for _, test := range []struct {
		header []string
		want   string
	}{
		{header, first.String()},
		{append(slices.Clone(header), "Last-Event-ID", first.String()), second.String()},
	} {
		a := e.watch("", test.header...)
		a.wantStatus(http.StatusOK)
		a.wantAllowed(page)
		if got := a.header.Get("Content-Type"); got != "text/event-stream" {
			e.Errorf("got Content-Type %q, want text/event-stream", got)
		}
		for got := ""; !strings.HasPrefix(got, "data:"); {
			line, err := a.body.ReadString('\n')
			if got = strings.TrimSpace(line); err != nil {
				e.Fatalf("got %q, %v; want an event", got, err)
			}
			if id, found := strings.CutPrefix(got, "id:"); found && strings.TrimSpace(id) != test.want {
				e.Errorf("got id %s, want %s", id, test.want)
			}
		}
	}
	a := e.watch("", "Accept", "text/event-stream", "Origin", "https://evil.example")
	a.wantUnreadable("https://evil.example")
}
