package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/listwatch/listwatch/watchserver/echo"
)

// A client without credentials must not delay the shutdown of the server.
func TestUnfinishedBodiesDoNotDelayShutdown(t *testing.T) {
	// The timeout is longer than a busy machine needs to shut down, and shorter than the 30 s for
	// which the server waits for a body.
	p := startProcess(t, nil, "serve", "--addr", "127.0.0.1:0", "--shutdown-timeout", "25s")
	address := strings.TrimPrefix(p.awaitURL(t), "http://")
	for _, line := range []string{
		"POST /api/v1/namespaces/default/pods", "POST /nothing", "GET /js/listwatch.js",
		"PUT /js/",
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", line)
		if strings.HasPrefix(line, "GET") { // other methods may still wait for the body
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code, stderr := p.exit(); code != 0 || strings.Contains(stderr, "did not end in time") {
		t.Errorf("exit code %d, want 0 before the timeout of 25 s; stderr:\n%s", code, stderr)
	}
}

func TestHeaderLimitsHoldForEveryRequest(t *testing.T) {
	origin := startServer(t)
	relay := startRelay(t, "--upstream", origin.http, "--resource", "pods")
	single := startRelay(t, "--upstream", origin.http+"/api/v1/pods")
	const object = `{"metadata":{"name":"one"}}`
	for _, r := range []struct{ method, url string }{
		{"GET", origin.http + podsPath},
		{"GET", origin.http + podsPath + "?watch=true"},
		{"GET", origin.http + podsPath + "/one"},
		{"POST", origin.http + podsPath},
		{"PUT", origin.http + podsPath + "/one"},
		{"DELETE", origin.http + podsPath},
		{"GET", origin.http + "/"},
		{"GET", origin.http + "/api"},
		{"GET", origin.http + "/version"},
		{"GET", origin.http + "/readyz"},
		{"GET", origin.http + "/openapi/v2"},
		{"GET", origin.http + "/nothing"},
		{"GET", origin.http + "/js/listwatch.js"},
		{"GET", origin.http + echo.Path},
		{"GET", relay.http + "/api/v1/pods"},
		{"GET", relay.http + "/readyz"},
		{"GET", relay.http + "/nothing"},
		{"GET", single.http + "/healthz"},
		{"GET", single.http + "/nothing"},
	} {
		for _, c := range []struct {
			header, value, query string
			want                 int
		}{
			{"X-Long", strings.Repeat("x", 70_000), "", http.StatusRequestHeaderFieldsTooLarge},
			{"X-None", "", strings.Repeat("x", 17_000), http.StatusRequestURITooLong},
			{"Impersonate-User", "root", "", http.StatusForbidden},
		} {
			separator := "?"
			if strings.Contains(r.url, "?") {
				separator = "&"
			}
			req, err := http.NewRequest(r.method, r.url+separator+"x="+c.query, strings.NewReader(object))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(c.header, c.value)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != c.want || !strings.Contains(string(body), `"kind":"Status"`) {
				t.Errorf("%s %s with %s: got %d %.200s, want %d", r.method, r.url, c.header, res.StatusCode, body,
					c.want)
			}
		}
	}
	if code, _, _ := request(t, "GET", origin.http+podsPath+"/one", ""); code != http.StatusNotFound {
		t.Errorf("got %d, want 404: a refused request has written", code)
	}
}

func TestCrossSiteWritesNeedAnAllowedOrigin(t *testing.T) {
	s := startServer(t, "--allow-origin", "https://friend.example.com")
	for _, c := range []struct {
		site, origin string
		want         int
	}{
		{"cross-site", "", http.StatusForbidden},
		{"same-site", "", http.StatusForbidden},
		{"cross-site", "https://other.example.com", http.StatusForbidden},
		{"cross-site", "https://friend.example.com", http.StatusCreated},
		{"same-origin", "", http.StatusCreated},
		{"none", "", http.StatusCreated},
	} {
		req, err := http.NewRequest("POST", s.http+podsPath, strings.NewReader(`{"metadata":{"generateName":"a-"}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", c.site)
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%s, origin %q: got %d, want %d", c.site, c.origin, res.StatusCode, c.want)
		}
	}
}

func TestNoQueryIsLogged(t *testing.T) {
	s := startServer(t, "-v", "--debug-addr", "127.0.0.1:0")
	const secret = "verysecret"
	for _, path := range []string{"/api/v1/pods?", "/nothing?", "/api/v1/pods?labelSelector=app%3D" + secret + "&"} {
		request(t, "GET", s.http+path+"token="+secret, "")
	}
	res, err := http.Get(s.http + "/api/v1/pods?watch=true&token=" + secret + "&labelSelector=app%3D" + secret)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, _, body := request(t, "GET", s.debug+"/debug/watches", "")
		if strings.Contains(body, secret) {
			t.Errorf("/debug/watches has the query: %s", body)
		}
		if strings.Contains(body, `"path":"/api/v1/pods"`) {
			break
		}
	}
	res.Body.Close()
	s.stderr.await(t, "the end of the watch", s.ended,
		func(text string) bool { return strings.Contains(text, "watch ended") })
	if text := s.stderr.String(); strings.Contains(text, secret) || !strings.Contains(text, "path=/api/v1/pods") ||
		!strings.Contains(text, "msg=refused") {
		t.Errorf("got %s, want the paths without their queries", text)
	}
}
