package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/testhttp"
)

func dialURL(t *testing.T, address string, c *http.Client, header http.Header) (Receiver, error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return DialHTTP(t.Context(), c, &Request{URL: u, Header: header}, 1)
}

func http1Client(n Network) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return HTTPClient(n.HTTPTransport(p))
}

// serve starts a server that is closed at the end of the test.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestRedirectsKeepCredentialsOnTheSameServer(t *testing.T) {
	var seen http.Header
	end := func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.Header().Set("Content-Type", "application/json")
	}
	other := serve(t, end)
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/there":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		default:
			end(w, r)
		}
	})
	c := http1Client(Network{})
	defer c.CloseIdleConnections()
	secrets := []string{"Authorization", "Cookie", "X-Remote-User"}
	header := http.Header{
		"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "X-Remote-User": {"me"},
		"Last-Event-Id": {"7"},
	}
	for path, wantSent := range map[string]bool{"/here": true, "/there": false} {
		r, err := dialURL(t, first.URL+path, c, header)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range secrets {
			if got := seen.Get(name) != ""; got != wantSent {
				t.Errorf("%s: %s was sent: %v, want %v", path, name, got, wantSent)
			}
		}
		if seen.Get("Last-Event-Id") != "7" || seen.Get("Accept") != "application/json" ||
			!wantSent && seen.Get("Referer") != "" {
			t.Errorf("%s: the request has %v", path, seen)
		}
		r.Close()
	}
}

func TestSameServerComparesHostPortAndScheme(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"http://h/a", "http://H:80/b", true},
		{"http://h", "https://h", true},
		{"https://h", "http://h", false},
		{"http://h:8080", "http://h:8081", false},
		{"http://h:8080", "https://h:8443", false},
		{"https://h", "https://h.evil", false},
	}
	for _, tt := range tests {
		a, _ := url.Parse(tt.a)
		b, _ := url.Parse(tt.b)
		if got := sameServer(a, b); got != tt.want {
			t.Errorf("%s to %s: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestRedirectsAreLimited(t *testing.T) {
	requests := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/", http.StatusFound)
	})
	c := http1Client(Network{})
	defer c.CloseIdleConnections()
	_, err := dialURL(t, s.URL, c, nil)
	if listwatch.CodeOf(err) != listwatch.Unsupported || requests != maxRedirects+1 {
		t.Errorf("got %v after %d requests", err, requests)
	}
}

func TestDialHTTPRejectsOtherResponses(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		code    listwatch.Code
	}{
		{
			"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>log in") },
			listwatch.Unsupported,
		},
		{
			"no Content-Type", func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil },
			listwatch.Unsupported,
		},
		{"an unrequested coding", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
		}, listwatch.Unsupported},
		{
			"partial content", func(w http.ResponseWriter,
				_ *http.Request,
			) {
				w.WriteHeader(http.StatusPartialContent)
			},
			listwatch.Unsupported,
		},
		{
			"an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
			listwatch.Unavailable,
		},
		{
			"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			listwatch.Unknown,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.handler)
			c := http1Client(Network{})
			defer c.CloseIdleConnections()
			_, err := dialURL(t, s.URL, c, nil)
			if e, ok := errors.AsType[*listwatch.Error](err); !ok || e.Code != tt.code || e.Op != "dial" {
				t.Errorf("got %v, want dial: %v", err, tt.code)
			}
		})
	}
	if _, err := dialURL(t, "ftp://127.0.0.1/", http1Client(Network{}),
		nil); listwatch.CodeOf(err) != listwatch.Invalid {
		t.Errorf("an unknown scheme: %v", err)
	}
}

func TestDialErrorCodes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options testhttp.Options
		scheme  string
		closed  bool // the server does not run
		code    listwatch.Code
	}{
		{"connection refused", testhttp.Options{}, "http", true, listwatch.Unavailable},
		{"an untrusted certificate", testhttp.Options{TLS: true}, "https", false, listwatch.Invalid},
		{"TLS to a server without TLS", testhttp.Options{}, "https", false, listwatch.Invalid},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := testhttp.Start(t, http.NotFoundHandler(), tt.options)
			if tt.closed {
				s.Close()
			}
			c := http1Client(Network{Dial: s.Dial})
			defer c.CloseIdleConnections()
			address := tt.scheme + "://127.0.0.1/"
			_, err := dialURL(t, address, c, nil)
			if listwatch.CodeOf(err) != tt.code {
				t.Errorf("%s: got %v, want code %v", tt.name, err, tt.code)
			}
			if strings.Contains(err.Error(), address) {
				t.Errorf("%s: %v contains the URL, which may have secrets", tt.name, err)
			}
		})
	}
	err := DialError(t.Context(), "dial", fmt.Errorf("wrapped: %w", tls.RecordHeaderError{}))
	if got := listwatch.CodeOf(err); got != listwatch.Unsupported {
		t.Errorf("a TLS record error: code %v, want %v", got, listwatch.Unsupported)
	}
}

func TestDialHTTPReturnsTheContextError(t *testing.T) {
	requested := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(requested)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-requested
		cancel()
	}()
	u, _ := url.Parse(s.URL)
	if _, err := DialHTTP(ctx, http1Client(Network{}), &Request{URL: u}, 1); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestAcceptHeaderKeepsTheOrder(t *testing.T) {
	r := &Request{Framings: []framing.Framer{framing.SSE{}, framing.JSON{}, framing.CBORSeq{}}}
	if got, want := r.AcceptHeader(),
		"text/event-stream, application/json;q=0.9, application/cbor-seq;q=0.8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := new(Request).AcceptHeader(), "application/json"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimeoutLimitsTheWaitForHeaders(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-release })
	defer close(release)
	c := http1Client(Network{})
	c.Timeout = 10 * time.Millisecond
	_, err := dialURL(t, s.URL, c, nil)
	if listwatch.CodeOf(err) != listwatch.Unavailable || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// An upgradedBody imitates the body of a response with status 101, which is an io.Writer too.
type upgradedBody struct{ io.ReadCloser }

func (upgradedBody) Write(p []byte) (int, error) { return len(p), nil }

func TestDoEndsTheContextWithTheStream(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   io.ReadCloser // nil if the request fails
	}{
		{"a stream", 200, http.NoBody},
		{"an upgraded connection", 101, upgradedBody{http.NoBody}},
		{"an error", 0, nil},
	} {
		var ctx context.Context
		c := &http.Client{Timeout: time.Hour, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			ctx = r.Context()
			if tt.body == nil {
				return nil, io.ErrUnexpectedEOF
			}
			return &http.Response{StatusCode: tt.status, Header: http.Header{}, Body: tt.body, Request: r}, nil
		})}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server.test", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := Do(c, r)
		if (err != nil) != (tt.body == nil) {
			t.Fatalf("%s: got error %v", tt.name, err)
		}
		if err == nil {
			if ctx.Err() != nil {
				t.Errorf("%s: the context ended before the body was closed", tt.name)
			}
			_, want := tt.body.(io.Writer)
			if _, got := resp.Body.(io.Writer); got != want {
				t.Errorf("%s: the body is a Writer: %v, want %v", tt.name, got, want)
			}
			resp.Body.Close()
		}
		if ctx.Err() == nil {
			t.Errorf("%s: the context is still open at the end", tt.name)
		}
	}
}

// net/http requests compression on its own unless the request has an Accept-Encoding header.
func TestDoRequestsNoCompression(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":{"accepted":"`+
			r.Header.Get("Accept-Encoding")+`"}}}}`)
	})
	r, err := dialURL(t, s.URL, s.Client(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Receive(); err != nil || !strings.Contains(string(e.Object), `"accepted":"identity"`) {
		t.Errorf("got %s, error %v, want Accept-Encoding identity", e.Object, err)
	}
}
