package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
)

// http1Attacks are floods over HTTP/1.1. They build their large bodies only when they run, because
// every process of the test binary initializes this list.
var http1Attacks = []attack{
	{"unread lists", func(ctx context.Context, a *attacker) {
		parallel(ctx, 40, func() { a.hold(ctx, "GET /api/v1/pods?pretty=true HTTP/1.1\r\nHost: localhost\r\n\r\n") })
	}},
	{"compressed lists", listFlood("Accept-Encoding", "gzip")},
	{"tables", listFlood("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")},
	{"indented lists", listFlood("Accept", "application/json")},
	{"aborted lists", func(ctx context.Context, a *attacker) {
		parallel(ctx, 20, func() {
			a.exchange(ctx, "GET /api/v1/pods?pretty=true HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
		})
	}},
	{"small reads", func(ctx context.Context, a *attacker) {
		parallel(ctx, 100, func() { a.send(ctx, "GET", podsPath+"/none", "") })
	}},
	{"YAML bombs", yamlBombs},
	{"unfinished large bodies", func(ctx context.Context, a *attacker) {
		body := strings.Repeat(" ", 2_900_000)
		text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", podsPath,
			len(body)+1, body)
		parallel(ctx, 150, func() { a.hold(ctx, text) })
	}},
	{"unfinished small bodies", unfinishedBodies},
	{"JSON bodies", func(ctx context.Context, a *attacker) {
		body := `{"metadata":{"name":"x"},"x":[` + strings.Repeat("{},", 900_000) + `0]}`
		parallel(ctx, 16, func() { a.send(ctx, "POST", podsPath+"?dryRun=All", body) })
	}},
	{"JSON members", func(ctx context.Context, a *attacker) {
		var body strings.Builder
		body.WriteString(`{"metadata":{"name":"x"}`)
		for i := range 200_000 {
			fmt.Fprintf(&body, `,"%d":{}`, i)
		}
		body.WriteByte('}')
		parallel(ctx, 16, func() { a.send(ctx, "POST", podsPath+"?dryRun=All", body.String()) })
	}},
	{"tiny chunks", func(ctx context.Context, a *attacker) {
		text := "POST " + podsPath + "?dryRun=All HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("1\r\n \r\n", 500_000) + "0\r\n\r\n"
		parallel(ctx, 16, func() { a.exchange(ctx, text) })
	}},
	{"JSON patches", func(ctx context.Context, a *attacker) {
		// The first patch stays below the server's limit on the work of a patch, the second exceeds
		// it.
		a.patch(ctx, "application/json-patch+json", jsonPatch(60), jsonPatch(360))
	}},
	{"merge patches", func(ctx context.Context, a *attacker) {
		a.patch(ctx, "application/merge-patch+json",
			`{"x":[`+strings.Repeat("{},", 900_000)+`0]}`,
			`{"x":`+strings.Repeat(`{"a":`, 400_000)+"1"+strings.Repeat("}", 400_000)+`}`)
	}},
	{"strategic patches", func(ctx context.Context, a *attacker) {
		a.patch(ctx, "application/strategic-merge-patch+json",
			`{"spec":{"containers":[`+strings.Repeat(`{"name":"a"},`, 200_000)+`{"name":"b"}]}}`)
	}},
	{"applies", func(ctx context.Context, a *attacker) {
		a.patch(ctx, "application/apply-patch+yaml",
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"list"},"spec":{"containers":[`+
				strings.Repeat(`{"name":"a"},`, 200_000)+`{"name":"b"}]}}`,
			"x: ["+strings.Repeat("a,", 127<<10)+"a]")
	}},
	{"watches", func(ctx context.Context, a *attacker) {
		var n atomic.Int64
		parallel(ctx, 1200, func() {
			collection := "/api/v1/pods" // begins with 20 MiB of initial events
			if n.Add(1)%2 == 0 {
				collection = configMaps // receives the updates by the innocent client
			}
			a.hold(ctx, "GET "+collection+"?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
		})
	}},
	{"short watches", func(ctx context.Context, a *attacker) {
		parallel(ctx, 50, func() { a.exchange(ctx, "GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n") })
	}},
	{"WebSocket pings", func(ctx context.Context, a *attacker) {
		ping := strings.Repeat("\x89\xfd\x00\x00\x00\x00"+strings.Repeat("p", 125), 1000)
		parallel(ctx, 16, func() {
			c := a.dial(ctx)
			if c == nil {
				return
			}
			defer c.Close()
			_, err := io.WriteString(c,
				"GET "+configMaps+
					"?watch=true HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
					"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
			for err == nil {
				_, err = io.WriteString(c, ping)
			}
			a.count("closed")
		})
	}},
	{"connections", func(ctx context.Context, a *attacker) {
		// The attacker opens more connections than --max-connections allows.
		parallel(ctx, 5000, func() { a.holdUntilClosed(ctx, "") })
	}},
	{"headers", headerFlood},
	{"creates", func(ctx context.Context, a *attacker) {
		const services = "/api/v1/namespaces/attacker/services"
		body := largePod("", 10<<10)
		body = strings.Replace(body, `"name":""`, `"generateName":"a-"`, 1)
		parallel(ctx, 16, func() {
			if a.send(ctx, "POST", services, body) == 403 { // the quota is reached
				a.send(ctx, "DELETE", services, "")
			}
		})
	}},
	{"smuggling", smuggling},
}

func listFlood(header ...string) func(context.Context, *attacker) {
	return func(ctx context.Context, a *attacker) {
		parallel(ctx, 20, func() { a.send(ctx, "GET", "/api/v1/pods?pretty=true", "", header...) })
	}
}

func jsonPatch(inserts int) string {
	return "[" + strings.Repeat(`{"op":"add","path":"/list/0","value":0},`, inserts) +
		`{"op":"remove","path":"/list/0"}]`
}

// patch sends the given patches in turn, repeatedly.
func (a *attacker) patch(ctx context.Context, mediaType string, patches ...string) {
	var i atomic.Int64
	parallel(ctx, 16, func() {
		patch := patches[int(i.Add(1))%len(patches)]
		a.send(ctx, "PATCH", podsPath+"/list?dryRun=All&fieldManager=a", patch, "Content-Type", mediaType)
	})
}

func yamlBombs(ctx context.Context, a *attacker) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'i'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	bombs := []string{
		"x: [" + strings.Repeat("a,", 127<<10) + "a]", // just below kubeapi.DefaultMaxYAMLBytes
		"x: [" + strings.Repeat("a,", 1400<<10) + "a]",
		laughs,
		"x: " + strings.Repeat("[", 100_000),
	}
	var i atomic.Int64
	parallel(ctx, 12, func() {
		a.send(ctx, "POST", podsPath+"?dryRun=All", bombs[int(i.Add(1))%len(bombs)], "Content-Type", "application/yaml")
	})
}

// unfinishedBodies sends requests whose bodies never end. The server accepts some of these
// requests, refuses others, and has no handler for the rest. Some use a method without a body.
func unfinishedBodies(ctx context.Context, a *attacker) {
	lines := []string{
		"POST " + podsPath, "POST " + podsPath + "?dryRun=None", "PUT /nothing",
		"DELETE " + podsPath + "/none", "GET " + podsPath, "GET /js/listwatch.js",
	}
	var i atomic.Int64
	parallel(ctx, 600, func() {
		a.holdUntilClosed(ctx,
			lines[int(i.Add(1))%len(lines)]+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	})
}

func headerFlood(ctx context.Context, a *attacker) {
	field := "X-Long: " + strings.Repeat("x", 1000) + "\r\n"
	begin := "GET /api/v1/pods?limit=1 HTTP/1.1\r\nHost: localhost\r\n"
	requests := []string{
		begin + strings.Repeat(field, 900), // too large, and without an end
		"GET /" + strings.Repeat("x", 500_000),
		begin + "X: ", // small, and without an end
		begin + strings.Repeat(field, 500) + "\r\n",
	}
	var i atomic.Int64
	parallel(ctx, 100, func() { a.holdUntilClosed(ctx, requests[int(i.Add(1))%len(requests)]) })
}

// smuggling sends requests whose end is ambiguous. A server that finds the wrong end would execute
// the DELETE request that the body contains. The connection must close in any case.
func smuggling(ctx context.Context, a *attacker) {
	chunks := "0\r\n\r\nDELETE " + configMap(innocentName) + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(chunks))
	const chunked = "Transfer-Encoding: chunked\r\n"
	requests := []string{"POST " + podsPath + " HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n" + chunked +
		"\r\n" + chunks}
	for _, fields := range []string{
		length + chunked, chunked + length, length + "Transfer-Encoding : chunked\r\n",
		length + "Transfer-Encoding:\x0bchunked\r\n",
		length + "Transfer-Encoding: identity, chunked\r\n", length + "Transfer-Encoding: chunked, identity\r\n",
		length + chunked + "Transfer-Encoding: x\r\n",
		length + "Content-Length: 0\r\n", "Content-Length: 0\r\n" + length, "Content-Length: +5\r\n",
		"Content-Length: 5, 5\r\n", "Content-Length: 0x5\r\n",
		"Content-Length : 5\r\n", " Content-Length: 5\r\n",
	} {
		requests = append(requests, "POST "+podsPath+" HTTP/1.1\r\nHost: localhost\r\n"+fields+"\r\n"+chunks)
	}
	for i := 0; ctx.Err() == nil; i++ {
		c := a.dial(ctx)
		if c == nil {
			continue
		}
		_, _ = io.WriteString(c, requests[i%len(requests)])
		_ = c.SetReadDeadline(time.Now().Add(testTimeout))
		answer, err := io.ReadAll(c)
		c.Close()
		if ctx.Err() == nil && (err != nil || strings.Count(string(answer), "HTTP/1.1 ") > 1) {
			a.fault("%q: got %q, %v, want one response and the end of the connection", requests[i%len(requests)],
				answer, err)
		}
		a.count("closed")
	}
}
