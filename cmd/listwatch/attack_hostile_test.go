package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// hostileRequests are attacks that do not flood the server. Most of them check its responses.
var hostileRequests = []attack{
	{"forbidden requests", forbiddenRequests},
	{"Upgrade without Connection", func(ctx context.Context, a *attacker) {
		parallel(ctx, 4, func() {
			for _, protocol := range []string{"websocket", "h2c", "x"} {
				status := a.exchange(ctx,
					"GET /api/v1/pods?limit=1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: "+protocol+"\r\n\r\n")
				if status != http.StatusOK && status != http.StatusTooManyRequests && ctx.Err() == nil {
					a.fault("Upgrade: %s: got %d, want 200", protocol, status)
				}
			}
		})
	}},
	{"queries with secrets", func(ctx context.Context, a *attacker) {
		parallel(ctx, 4, func() {
			for _, path := range []string{
				"/nothing?", podsPath + "?limit=1&",
				"/api/v1/pods?watch=true&timeoutSeconds=1&labelSelector=" + attackSecret + "&",
			} {
				a.send(ctx, "GET", path+"token="+attackSecret, "")
			}
		})
	}},
	{"pages on the debug address", debugRequests},
	{"SIGHUP", func(ctx context.Context, a *attacker) {
		server, err := os.FindProcess(a.server)
		if err != nil {
			a.fault("SIGHUP: %v", err)
			return
		}
		for ctx.Err() == nil {
			if err := server.Signal(syscall.SIGHUP); err != nil {
				a.fault("SIGHUP: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
	}},
}

// forbiddenRequests sends requests that the server must refuse.
func forbiddenRequests(ctx context.Context, a *attacker) {
	const object = `{"metadata":{"name":"x"}}`
	host := strings.TrimPrefix(a.url, "http://")
	long := strings.Repeat("x", 17_000)
	requests := []struct {
		want               int
		method, path, body string
		header             []string
	}{
		{403, "GET", podsPath, "", []string{"Impersonate-User", "root"}},
		{403, "POST", podsPath, object, []string{"Origin", "tauri://" + host}},
		{403, "POST", podsPath, object, []string{"Origin", "chrome-extension://" + host}},
		{403, "POST", podsPath, object, []string{"Origin", "null"}},
		{403, "POST", podsPath, object, []string{"Sec-Fetch-Site", "cross-site"}},
		{400, "POST", podsPath, `{"metadata":{"name":"x"},"x":1e400}`, nil},
		{413, "POST", podsPath, strings.Repeat(" ", 3<<20+1), nil},
		{414, "GET", podsPath + "/x?" + long, "", nil},
		{414, "GET", "/version?" + long, "", nil},
		{431, "GET", podsPath + "/x", "", []string{"X", strings.Repeat("x", 70_000)}},
		{400, "PATCH", podsPath + "/list", jsonPatch(360), []string{"Content-Type", "application/json-patch+json"}},
	}
	parallel(ctx, 4, func() {
		for _, r := range requests {
			got := a.send(ctx, r.method, r.path, r.body, r.header...)
			if ctx.Err() == nil && got != r.want && got != http.StatusTooManyRequests {
				a.fault("%s %.100s with %.100q: got %d, want %d", r.method, r.path, r.header, got, r.want)
			}
		}
	})
}

// debugRequests sends requests to the debug address with the headers of a page of another site. The
// server must refuse them. Without these headers, the attacker may read /debug/watches, which must
// show no queries.
func debugRequests(ctx context.Context, a *attacker) {
	api := a.url
	a.url = a.debug
	defer func() { a.url = api }()
	parallel(ctx, 4, func() {
		for _, path := range []string{
			"/debug/pprof/profile?seconds=30", "/debug/pprof/trace?seconds=30",
			"/debug/watches", "/metrics",
		} {
			for _, header := range [][]string{{"Origin", "http://evil.example.com"}, {"Sec-Fetch-Site", "cross-site"}} {
				if got := a.send(ctx, "GET", path, "", header...); got != http.StatusForbidden && ctx.Err() == nil {
					a.fault("GET %s with %q: got %d, want 403", path, header, got)
				}
			}
		}
		res, err := a.client.Get(a.debug + "/debug/watches")
		if err != nil {
			return
		}
		defer res.Body.Close()
		if body, _ := io.ReadAll(res.Body); strings.Contains(string(body), attackSecret) {
			a.fault("/debug/watches has a query: %s", body)
		}
	})
}
