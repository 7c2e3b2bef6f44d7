package kubeapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchcache"
	"github.com/listwatch/listwatch/watchserver"
)

// secret stands for what the error of a database or a network says about the server.
const secret = "user=app host=10.0.0.7"

// internalErrors are the shapes that an error with the secret can have.
var internalErrors = map[string]error{
	"foreign": errors.New(secret),
	"the cause": &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the database is down",
		Err: errors.New(secret),
	},
	"the only text": &listwatch.Error{Code: listwatch.Unavailable, Err: errors.New(secret)},
	"of a bad request": &listwatch.Error{
		Code: listwatch.Invalid, Message: "the row is invalid",
		Err: errors.New(secret),
	},
	"the operation": &listwatch.Error{Code: listwatch.Corrupt, Op: secret},
	"around an error": fmt.Errorf("%s: %w", secret,
		&listwatch.Error{Code: listwatch.Unavailable, Message: "the database is down"}),
	"limited": fmt.Errorf("%s: %w", secret, context.DeadlineExceeded),
}

// A failing is a backend whose calls fail with err.
type failing struct {
	err  error
	late bool // Get and Watch succeed, and what follows fails
}

func (f failing) Describe() listwatch.Description {
	return listwatch.Description{APIVersion: "demo.example.com/v1", Kind: "Widget", Epoch: "e"}
}

func (f failing) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, f.err
}

func (f failing) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	if f.late {
		return f, nil
	}
	return nil, f.err
}

func (f failing) Next(context.Context, []listwatch.Event) (int, error) { return 0, f.err }

func (f failing) Close() error { return nil }

func (f failing) Get(_ context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if !f.late {
		return nil, f.err
	}
	return listwatch.NewObject([]byte(`{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"`+
		key.Name+`","namespace":"n","uid":"u"}}`), 5, nil)
}

func (f failing) Commit(context.Context, store.Change) (*listwatch.Object, error) { return nil, f.err }

// A log keeps the errors that the hooks of a server report.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) trace() *watchserver.Trace {
	add := func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintln(&l.text, err)
	}
	return &watchserver.Trace{
		Refused: func(_ context.Context, _ watchserver.Request, err error) { add(err) },
		Closed: func(_ context.Context, _ watchserver.Watch, _ watchserver.EndReason, err error) {
			add(err)
		},
	}
}

// take returns what was logged since the last call.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

const widget = `{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"n"}}`

// serveFailing serves f in every way. It returns the handler of each.
func serveFailing(t *testing.T, f failing, l *log) map[string]http.Handler {
	t.Helper()
	resource, err := kubeapi.ParseResource("widgets.v1.demo.example.com=Widget")
	if err != nil {
		t.Fatal(err)
	}
	c := store.New(resource.CollectionSpec(), f)
	api := &kubeapi.Handler{Ready: func() error { return f.err }}
	if err := api.Add(resource, c); err != nil {
		t.Fatal(err)
	}
	api.Server.Trace = l.trace()
	newest := watchcache.New(f.Describe(), watchcache.Options{
		Newest: func(context.Context) (listwatch.Version, error) { return 0, f.err },
	})
	if err := newest.Replace(nil, 1); err != nil {
		t.Fatal(err)
	}
	failed := watchcache.New(f.Describe(), watchcache.Options{})
	failed.Fail(f.err)
	relayed := relay.Open(failing{err: f.err}, relay.Options{})
	t.Cleanup(func() { _ = relayed.Close() })
	return map[string]http.Handler{
		"kubeapi": api,
		"crudserver": &crudserver.Handler{
			Path: "/widgets", Collection: c,
			Server: &watchserver.Server{Trace: l.trace()},
		},
		"watchserver":  &watchserver.Server{Source: f, Trace: l.trace()},
		"newest":       &watchserver.Server{Source: newest, Trace: l.trace()},
		"failed cache": &watchserver.Server{Source: failed, Trace: l.trace()},
		"relay":        &watchserver.Server{Source: relayed, Trace: l.trace()},
	}
}

// Relays and caches wait for a state, so the test runs in fake time.
func TestNoInternalErrorReachesAClient(t *testing.T) { synctest.Test(t, testSecrecy) }

func testSecrecy(t *testing.T) {
	const object, all = "/apis/demo.example.com/v1/namespaces/n/widgets/a", "/apis/demo.example.com/v1/widgets"
	type request struct{ method, path, query, header, body string }
	requests := map[string][]request{
		"kubeapi": {
			{"GET", all, "", "", ""},
			{"GET", all, "watch=1", "", ""},
			{"GET", object, "", "", ""},
			{"GET", all, "", "application/cbor", ""},
			{"GET", all, "watch=1", "application/cbor-seq", ""},
			{"GET", all, "", "application/json;as=Table;v=v1;g=meta.k8s.io", ""},
			{"POST", strings.TrimSuffix(object, "/a"), "", "application/json", widget},
			{"PUT", object, "", "application/json", widget},
			{"PATCH", object, "", "application/merge-patch+json", `{"x":1}`},
			{"PATCH", object, "", "application/json-patch+json", `[{"op":"add","path":"/x","value":1}]`},
			{"PATCH", object, "fieldManager=m", "application/apply-patch+yaml", widget},
			{"DELETE", object, "", "", ""},
			{"DELETE", strings.TrimSuffix(object, "/a"), "", "", ""},
			{"GET", kubeapi.UnionPath, "of=" + all, "", ""},
			{"GET", kubeapi.UnionPath, "watch=1&of=" + all, "", ""},
			{"GET", "/readyz", "", "", ""},
		},
		"crudserver": {
			{"GET", "/widgets", "", "", ""},
			{"GET", "/widgets", "watch=1", "", ""},
			{"GET", "/widgets/a", "", "", ""},
			{"POST", "/widgets", "", "application/json", widget},
			{"PUT", "/widgets/a", "", "application/json", widget},
			{"PATCH", "/widgets/a", "", "application/merge-patch+json", `{"x":1}`},
			{"DELETE", "/widgets/a", "", "", ""},
		},
	}
	for shape, err := range internalErrors {
		for _, late := range []bool{false, true} {
			l := new(log)
			for name, h := range serveFailing(t, failing{err, late}, l) {
				all := requests[name]
				if all == nil {
					all = []request{
						{"GET", "/", "", "", ""},
						{"GET", "/", "watch=1", "", ""},
						{"QUERY", "/", "", "", ""},
					}
				}
				for _, q := range all {
					r := httptest.NewRequest(q.method, q.path+"?"+q.query, strings.NewReader(q.body))
					r.Header.Set("Content-Type", q.header)
					if q.method == "GET" && q.header != "" {
						r.Header.Set("Accept", q.header)
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					got := fmt.Sprint(w.Code, w.Header(), w.Body)
					if strings.Contains(got, secret) {
						t.Errorf("%s, late %v: %s %s %s: the client got %s", shape, late, name, q.method, r.URL, got)
					}
					logged := l.take()
					if name == "kubeapi" && q.path != "/readyz" && w.Code >= 500 && !strings.Contains(logged, secret) {
						t.Errorf("%s, late %v: %s %s: got %s, logged %q, want the whole error", shape, late, q.method,
							r.URL, got, logged)
					}
				}
			}
		}
	}
}

// The errors of a watch end as an event, a close frame or a response. None of them may have the
// secret, whatever the transport is.
func TestNoInternalErrorIsOnTheWire(t *testing.T) {
	for shape, err := range internalErrors {
		for _, late := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := testhttp.Start(t, &watchserver.Server{Source: failing{err, late}}, testhttp.Options{
					Configure: func(hs *http.Server) { h2.Configure(hs, h2.Config{}) },
				})
				for name, received := range map[string]string{
					"WebSocket": readWebSocket(t, s),
					"HTTP/2":    readHTTP2(t, s),
				} {
					if strings.Contains(received, secret) {
						t.Errorf("%s, late %v: the client received %q over %s", shape, late, received, name)
					}
					if !strings.Contains(received, `"kind":"Status"`) {
						t.Errorf("%s, late %v: the client received %q over %s, want a Status", shape, late,
							received, name)
					}
				}
			})
		}
	}
}

// readWebSocket opens a watch over WebSocket and returns all bytes that the server sends. Frames of
// a server are not masked, so their text is readable.
func readWebSocket(t *testing.T, s *testhttp.Server) string {
	t.Helper()
	conn, err := s.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /?watch=1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	// A server that keeps the connection open has sent all that it has to say.
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	received, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	return string(received)
}

// readHTTP2 opens a watch over HTTP/2 and returns the response.
func readHTTP2(t *testing.T, s *testhttp.Server) string {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: s.Dial}
	defer transport.CloseIdleConnections()
	response := testkit.Do(t, transport, http.MethodGet, s.URL("/?watch=1"), "")
	body := testkit.Body(t, response)
	if response.ProtoMajor != 2 {
		t.Errorf("got %s, want HTTP/2", response.Proto)
	}
	return fmt.Sprint(response.StatusCode, response.Header, body, response.Trailer)
}
