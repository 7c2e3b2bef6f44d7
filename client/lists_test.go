package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/internal/reflector"
)

// An answer is what a server of lists says.
type answer struct {
	status int
	body   string
	header http.Header
}

// A listServer answers the lists of a Remote without a network.
type listServer struct {
	answer func(n int) answer

	mu   sync.Mutex
	seen []*http.Request // guarded by mu
}

func serveLists(r *Remote, answer func(n int) answer) *listServer {
	s := &listServer{answer: answer}
	r.HTTPClient = &http.Client{Transport: s}
	return s
}

func (s *listServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.seen)
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	a := s.answer(n)
	h := http.Header{"Content-Type": {"application/json"}}
	for name, values := range a.header {
		h[name] = values
	}
	body := io.NopCloser(strings.NewReader(a.body))
	return &http.Response{StatusCode: a.status, ProtoMajor: 1, Header: h, Body: body, ContentLength: -1, Request: r}, nil
}

// queries returns the query of each request, joined by spaces.
func (s *listServer) queries() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var queries []string
	for _, r := range s.seen {
		queries = append(queries, r.URL.RawQuery)
	}
	return strings.Join(queries, " ")
}

// listed answers every list with body.
func listed(body string) func(int) answer {
	return func(int) answer { return answer{status: 200, body: body} }
}

// listOf is a list at version of objects whose versions are 1, 2, 3 …
func listOf(version int, names ...string) string {
	var items []string
	for i, name := range names {
		items = append(items, string(thing(name, i+1)))
	}
	return fmt.Sprintf(`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, strings.Join(items, ","))
}

// hang is a network on which nobody answers. It gives up by itself, because net/http goes on dialling for who comes next.
func hang(ctx context.Context, _, _ string) (net.Conn, error) {
	reflector.Sleep(ctx, 10*time.Second)
	return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
}

// mute is a network on which connections are made and nothing is said.
func mute(t testing.TB) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		a, b := memnet.Pipe()
		t.Cleanup(func() { b.Close() })
		return a, nil
	}
}
