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

// A listResponse is a response to a list request.
type listResponse struct {
	status int
	body   string
	header http.Header
}

// A listServer responds to the lists of a Remote in memory, without a network.
type listServer struct {
	respond func(n int) listResponse

	mu       sync.Mutex
	requests []*http.Request // guarded by mu
}

func serveLists(r *Remote, respond func(n int) listResponse) *listServer {
	s := &listServer{respond: respond}
	r.HTTPClient = &http.Client{Transport: s}
	return s
}

func (s *listServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	response := s.respond(n)
	h := http.Header{"Content-Type": {"application/json"}}
	for name, values := range response.header {
		h[name] = values
	}
	body := io.NopCloser(strings.NewReader(response.body))
	return &http.Response{
		StatusCode: response.status, ProtoMajor: 1, Header: h, Body: body, ContentLength: -1,
		Request: r,
	}, nil
}

// queries returns the query of each request, joined by spaces.
func (s *listServer) queries() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var queries []string
	for _, r := range s.requests {
		queries = append(queries, r.URL.RawQuery)
	}
	return strings.Join(queries, " ")
}

// respondWith returns the function of a server that responds to every list with the given body.
func respondWith(body string) func(int) listResponse {
	return func(int) listResponse { return listResponse{status: 200, body: body} }
}

// listBodyOf returns the body of a list at version. Its objects have the versions 1, 2, 3
// and so on.
func listBodyOf(version int, names ...string) string {
	var items []string
	for i, name := range names {
		items = append(items, string(thing(name, i+1)))
	}
	return fmt.Sprintf(`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`,
		version, strings.Join(items, ","))
}

// dialTimeout is the dial function of a network without servers. Each dial ends after ten seconds
// at the latest, because ctx may never end: after the context of a request has ended, net/http
// continues the dial for later requests.
func dialTimeout(ctx context.Context, _, _ string) (net.Conn, error) {
	reflector.Sleep(ctx, 10*time.Second)
	return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
}

// dialSilent returns the dial function of a network whose servers accept connections but
// never send data.
func dialSilent(t testing.TB) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		a, b := memnet.Pipe()
		t.Cleanup(func() { b.Close() })
		return a, nil
	}
}
