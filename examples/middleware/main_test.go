package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// A service is the running program, with the metrics, spans and log lines that it has written.
type service struct {
	*testing.T
	url      string
	server   *watchserver.Server
	settings typed.Collection[Setting]
	metrics  *prometheus.Registry
	spans    *tracetest.SpanRecorder
	ended    chan watchserver.Watch // receives each ended watch from the Trace
	done     chan struct{}          // receives a value when all middleware of a watch has returned

	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

// Write implements io.Writer for the log.
func (s *service) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// start starts a server with the program's router, wrapped in outer.
func start(t *testing.T, outer func(http.Handler) http.Handler, configure func(*http.Server)) *service {
	s := &service{
		T: t, settings: memory.New[Setting](), metrics: prometheus.NewRegistry(), spans: tracetest.NewSpanRecorder(),
		ended: make(chan watchserver.Watch, 1), done: make(chan struct{}, 1),
	}
	s.server = &watchserver.Server{Source: s.settings, Trace: &watchserver.Trace{
		Closed: func(_ context.Context, w watchserver.Watch, _ watchserver.EndReason, _ error) { s.ended <- w },
	}}
	router := newRouter(s.server, s.metrics, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans)),
		log.New(s, "", 0))
	handler := outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { s.done <- struct{}{} }()
		router.ServeHTTP(w, r)
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	configure(srv)
	go srv.Serve(l) // returns after Close
	t.Cleanup(func() { srv.Close() })
	s.url = "http://" + l.Addr().String()
	return s
}

// number returns the value of a gauge, or the sum and count of a histogram or summary. It adds up
// the values for all status codes.
func (s *service) number(name string) (value float64, count uint64) {
	s.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			value += m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum() + m.GetSummary().GetSampleSum()
			count += m.GetHistogram().GetSampleCount() + m.GetSummary().GetSampleCount()
		}
	}
	return value, count
}

var paths = []struct {
	name      string
	client    transport.Client
	outer     func(http.Handler) http.Handler
	configure func(*http.Server)
	status    string // the status code that chi logs
	seesBytes bool   // whether the middleware can count the bytes of the response
}{
	{"HTTP/1.1", &chunked.Client{}, plain, configure, "200", true},
	{"HTTP/2", &h2.Client{}, plain, configure, "200", true},
	{"HTTP/2 by h2c", &h2.Client{}, withH2C, func(*http.Server) {}, "200", true},
	{"HTTP/1.1 through h2c", &chunked.Client{}, withH2C, func(*http.Server) {}, "200", true},
	{"WebSocket", &websocket.Client{}, plain, configure, "000", false},
}

func plain(next http.Handler) http.Handler { return next }

func configure(srv *http.Server) { h2.Configure(srv, h2.Config{}) }

const watchTime = 300 * time.Millisecond

// The server ends the watch after watchTime. The reports of chi, promhttp and otelhttp must agree
// with the Trace.
func TestMiddlewareSeesTheWholeWatch(t *testing.T) {
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			s := start(t, path.outer, path.configure)
			began := time.Now()
			r := s.watch(path.client)
			if n, _ := s.number("http_in_flight_requests"); n != 1 {
				t.Errorf("got %v requests in flight during the watch, want 1", n)
			}
			s.put(r)
			<-time.After(watchTime) // the middleware must report this duration
			if err := s.server.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := r.Receive(); err != io.EOF {
				t.Errorf("got %v, want the clean end of the watch", err)
			}
			s.check(began, path.status, path.seesBytes)
		})
	}
}

// If the client disconnects, the handler must return normally, because middleware such as promhttp
// reports nothing about a handler that panics.
func TestMiddlewareSeesThatTheClientLeaves(t *testing.T) {
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			s := start(t, path.outer, path.configure)
			began := time.Now()
			r := s.watch(path.client)
			s.put(r)
			<-time.After(watchTime) // the middleware must report this duration
			r.Close()
			s.check(began, path.status, path.seesBytes)
		})
	}
}

func TestPagesSendTokensAndReadTheEpoch(t *testing.T) {
	s := start(t, plain, configure)
	get := func(method string, header http.Header) http.Header {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/settings", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		r.Header.Set("Origin", "https://dashboard.example.com")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		<-s.done
		resp.Body.Close()
		return resp.Header
	}
	preflight := get(http.MethodOptions, http.Header{
		"Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"authorization,content-type"},
	})
	if got := preflight.Get("Access-Control-Allow-Headers"); got != "authorization,content-type" {
		t.Errorf("got Access-Control-Allow-Headers %q", got)
	}
	h := get(http.MethodGet, http.Header{})
	if got, want := h.Get("Access-Control-Expose-Headers"), "Listwatch-Epoch, Retry-After, Warning"; got != want ||
		h.Get(transport.EpochHeader) == "" {
		t.Errorf("got Access-Control-Expose-Headers %q and epoch %q, want %q and an epoch", got,
			h.Get(transport.EpochHeader), want)
	}
}

func (s *service) watch(c transport.Client) transport.Receiver {
	s.Helper()
	u, err := url.Parse(s.url + "/settings?watch=1")
	if err != nil {
		s.Fatal(err)
	}
	header := http.Header{}
	if c.Name() != "websocket" { // the server, not the CORS middleware, would refuse this Origin
		header.Set("Origin", "https://dashboard.example.com")
	}
	r, err := c.Dial(s.Context(), &transport.Request{URL: u, Header: header})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { r.Close() })
	if got := r.Header().Get("Access-Control-Allow-Origin"); got != header.Get("Origin") {
		s.Errorf("got Access-Control-Allow-Origin %q, want %q", got, header.Get("Origin"))
	}
	return r
}

// put creates a setting, and waits until r has received the event of the setting.
func (s *service) put(r transport.Receiver) {
	s.Helper()
	if _, err := s.settings.Create(s.Context(),
		Setting{Metadata: listwatch.Metadata{Name: "a"}, Value: "1"}); err != nil {
		s.Fatal(err)
	}
	if _, err := r.Receive(); err != nil {
		s.Fatal(err)
	}
}

var logLine = regexp.MustCompile(`"GET http://[^"]*" from \S+ - (\d+) (\d+)B in (\S+)`)

// check verifies the reports of the middleware about the watch, which has lasted for watchTime.
func (s *service) check(began time.Time, status string, seesBytes bool) {
	s.Helper()
	watch := <-s.ended
	<-s.done
	most := time.Since(began)
	wantTime := func(who string, got time.Duration) {
		s.Helper()
		if got < watchTime-50*time.Millisecond || got > most {
			s.Errorf("%s: the watch took %v, want %v to %v", who, got, watchTime, most)
		}
	}
	wantBytes := func(who string, got int64) {
		s.Helper()
		if want := watch.Bytes; seesBytes && got != want {
			s.Errorf("%s: got %d bytes, want %d", who, got, want)
		}
	}
	if n, _ := s.number("http_in_flight_requests"); n != 0 || watch.Bytes == 0 {
		s.Errorf("got %v requests in flight after the watch of %d bytes, want 0", n, watch.Bytes)
	}
	seconds, count := s.number("http_request_duration_seconds")
	if count != 1 {
		s.Fatalf("promhttp has seen %d requests, want 1", count)
	}
	wantTime("promhttp", time.Duration(seconds*float64(time.Second)))
	size, _ := s.number("http_response_size_bytes")
	wantBytes("promhttp", int64(size))

	s.mu.Lock()
	defer s.mu.Unlock()
	line := logLine.FindStringSubmatch(s.log.String())
	if line == nil || line[1] != status {
		s.Fatalf("chi logged %q, want status %s", s.log.String(), status)
	}
	took, err := time.ParseDuration(line[3])
	wantTime("chi", took)
	wantBytes("chi", parseInt(line[2]))

	spans := s.spans.Ended()
	if len(spans) != 1 || err != nil {
		s.Fatalf("got %d spans, %v, want 1", len(spans), err)
	}
	wantTime("otelhttp", spans[0].EndTime().Sub(spans[0].StartTime()))
	var written int64
	for _, a := range spans[0].Attributes() {
		if a.Key == "http.response.body.size" {
			written = a.Value.AsInt64()
		}
	}
	wantBytes("otelhttp", written)
}

func parseInt(s string) (n int64) {
	for _, c := range s {
		n = 10*n + int64(c-'0')
	}
	return n
}
