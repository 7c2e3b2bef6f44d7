package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A scriptedTransport responds to request n with scriptFor(n). The first request has number 0.
type scriptedTransport struct {
	name      string
	scriptFor func(n int) script

	mu       sync.Mutex
	received []scriptedRequest // guarded by mu
}

type scriptedRequest struct {
	at     time.Time
	query  url.Values
	header http.Header
}

// A script is a response. Each step is a framing.WatchEvent, a time.Duration to wait,
// activity, or an error, which ends the response. After the last step the response stays
// open and silent.
type script struct {
	// refuse is the error with which the request fails. It is nil if the request succeeds.
	refuse error
	hangs  bool // the request has no response
	epoch  string
	steps  []any
}

// activity is traffic without an event.
type activity struct{}

func sends(steps ...any) script { return script{steps: steps} }
func refuses(err error) script  { return script{refuse: err} }
func always(s script) *scriptedTransport {
	return &scriptedTransport{scriptFor: func(int) script { return s }}
}

func sequence(scripts ...script) *scriptedTransport {
	return &scriptedTransport{scriptFor: func(n int) script { return scripts[min(n, len(scripts)-1)] }}
}

func (t *scriptedTransport) Name() string {
	if t.name == "" {
		return "scripted"
	}
	return t.name
}

func (t *scriptedTransport) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	t.mu.Lock()
	n := len(t.received)
	t.received = append(t.received, scriptedRequest{time.Now(), r.URL.Query(), r.Header})
	t.mu.Unlock()
	s := t.scriptFor(n)
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.refuse != nil {
		return nil, s.refuse
	}
	ctx, cancel := context.WithCancel(ctx)
	return &scriptedReceiver{ctx: ctx, cancel: cancel, steps: s.steps, epoch: s.epoch, onActivity: r.Activity}, nil
}

func (t *scriptedTransport) requests() []scriptedRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.received[:len(t.received):len(t.received)]
}

// versions returns the resourceVersion of each request, joined by spaces.
func (t *scriptedTransport) versions() string {
	var versions []string
	for _, r := range t.requests() {
		versions = append(versions, r.query.Get("resourceVersion"))
	}
	return strings.Join(versions, " ")
}

// A scriptedReceiver is one response of a scriptedTransport.
type scriptedReceiver struct {
	ctx        context.Context
	cancel     context.CancelFunc
	steps      []any
	epoch      string
	onActivity func()
}

func (s *scriptedReceiver) Header() http.Header {
	if s.epoch == "" {
		return http.Header{}
	}
	return http.Header{transport.EpochHeader: {s.epoch}}
}

func (s *scriptedReceiver) Close() error { s.cancel(); return nil }

func (s *scriptedReceiver) Receive() (framing.WatchEvent, error) {
	for len(s.steps) > 0 {
		step := s.steps[0]
		if err, ok := step.(error); ok {
			return framing.WatchEvent{}, err
		}
		s.steps = s.steps[1:]
		switch step := step.(type) {
		case time.Duration:
			if !reflector.Sleep(s.ctx, step) {
				return framing.WatchEvent{}, s.ctx.Err()
			}
		case framing.WatchEvent:
			s.onActivity()
			return step, s.ctx.Err()
		case activity:
			s.onActivity()
		}
	}
	<-s.ctx.Done()
	return framing.WatchEvent{}, s.ctx.Err()
}

func frame(kind, name string, version int) framing.WatchEvent {
	return framing.WatchEvent{Type: kind, Object: thing(name, version)}
}

func thing(name string, version int) []byte {
	return fmt.Appendf(nil, `{"kind":"Thing","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":"%d"}}`, name,
		version)
}

func added(name string, version int) framing.WatchEvent    { return frame("ADDED", name, version) }
func modified(name string, version int) framing.WatchEvent { return frame("MODIFIED", name, version) }

var ofThings = listwatch.Description{Kind: "Thing", APIVersion: "v1"}

func bookmark(version int) framing.WatchEvent {
	return framing.FromEvent(listwatch.NewBookmark(ofThings, listwatch.State{Version: listwatch.Version(version)}))
}

func synced(version int) framing.WatchEvent {
	return framing.FromEvent(listwatch.NewSynced(ofThings, listwatch.State{Version: listwatch.Version(version)}, 0))
}

func errorEvent(status int) framing.WatchEvent { return framing.FromError(statusError(status)) }

var errConnectionLost = &listwatch.Error{
	Code: listwatch.Unavailable, Op: "receive", Message: "the connection was lost",
	Err: io.ErrUnexpectedEOF,
}

func statusError(status int) *listwatch.Error {
	return &listwatch.Error{
		Code: kubestatus.CodeOfHTTP(status), Remote: true, Status: status,
		Message: http.StatusText(status),
	}
}

// newRemote returns a Remote with scripted transports and without a network.
func newRemote(transports ...*scriptedTransport) *Remote {
	r := &Remote{URL: "http://server.test/things", Network: transport.Network{Dial: dialNothing}}
	for _, t := range transports {
		r.Transports = append(r.Transports, t)
	}
	return r
}

func dialNothing(context.Context, string, string) (net.Conn, error) { return nil, errConnectionLost }

// watchFrom returns a query for the changes after version.
func watchFrom(version int) listwatch.Query {
	return listwatch.Query{Start: listwatch.StartAt, Version: listwatch.Version(version), Bookmarks: true}
}

// format formats an event as ADDED/a@5, and an initial event in parentheses.
func format(e listwatch.Event) string {
	s := e.Type.String()
	if e.Type == listwatch.Synced {
		s = "SYNCED"
	}
	if e.Object.Key.Name != "" {
		s += "/" + e.Object.Key.String()
	}
	s += "@" + e.Version.String()
	if e.Initial {
		s = "(" + s + ")"
	}
	return s
}

// wantEvents reads events and compares them with want.
func wantEvents(t testing.TB, w listwatch.Watcher, want string) {
	t.Helper()
	n := len(strings.Fields(want))
	var got []string
	for len(got) < n {
		var batch [4]listwatch.Event
		k, err := w.Next(t.Context(), batch[:min(n-len(got), len(batch))])
		if err != nil {
			t.Fatalf("got %v and then error %v, want %s", got, err, want)
		}
		for _, e := range batch[:k] {
			got = append(got, format(e))
		}
	}
	if got := strings.Join(got, " "); got != want {
		t.Fatalf("got events %s, want %s", got, want)
	}
}

// wantError reads the error that ends a watch. want is the expected error or its code.
func wantError(t testing.TB, w listwatch.Watcher, want error) {
	t.Helper()
	var batch [1]listwatch.Event
	n, err := w.Next(t.Context(), batch[:])
	if n > 0 {
		t.Fatalf("got %s, want error %v", format(batch[0]), want)
	}
	if err != want && listwatch.CodeOf(err) != want {
		t.Fatalf("got error %v, want %v", err, want)
	}
}
