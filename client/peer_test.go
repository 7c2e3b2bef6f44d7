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
	"github.com/listwatch/listwatch/transport"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A peer is a server that follows a script: the n-th stream that is dialled gets answer(n), the first is 0.
type peer struct {
	name   string
	answer func(n int) script

	mu    sync.Mutex
	dials []dialled // guarded by mu
}

type dialled struct {
	at     time.Time
	query  url.Values
	header http.Header
}

// A script is what a stream says, or the error that refuses it. A step is a framing.WatchEvent, an error, which ends the stream, a
// pause, or alive, which is traffic without an event. After the last step the stream is silent.
type script struct {
	refuse error
	epoch  string
	steps  []any
}

type alive struct{}

func says(steps ...any) script { return script{steps: steps} }
func refuses(err error) script { return script{refuse: err} }
func always(s script) *peer    { return &peer{answer: func(int) script { return s }} }
func inTurn(scripts ...script) *peer {
	return &peer{answer: func(n int) script { return scripts[min(n, len(scripts)-1)] }}
}

func (p *peer) Name() string {
	if p.name == "" {
		return "scripted"
	}
	return p.name
}

func (p *peer) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	p.mu.Lock()
	n := len(p.dials)
	p.dials = append(p.dials, dialled{time.Now(), r.URL.Query(), r.Header})
	p.mu.Unlock()
	s := p.answer(n)
	if s.refuse != nil {
		return nil, s.refuse
	}
	ctx, cancel := context.WithCancel(ctx)
	return &tape{ctx: ctx, cancel: cancel, steps: s.steps, epoch: s.epoch, activity: r.Activity}, nil
}

func (p *peer) seen() []dialled {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials[:len(p.dials):len(p.dials)]
}

// versions returns the resourceVersion of each dial.
func (p *peer) versions() string {
	var versions []string
	for _, d := range p.seen() {
		versions = append(versions, d.query.Get("resourceVersion"))
	}
	return strings.Join(versions, " ")
}

// A tape is one stream of a peer.
type tape struct {
	ctx      context.Context
	cancel   context.CancelFunc
	steps    []any
	epoch    string
	activity func()
}

func (t *tape) Header() http.Header {
	if t.epoch == "" {
		return http.Header{}
	}
	return http.Header{transport.EpochHeader: {t.epoch}}
}

func (t *tape) Close() error { t.cancel(); return nil }

func (t *tape) Receive() (framing.WatchEvent, error) {
	for len(t.steps) > 0 {
		step := t.steps[0]
		if err, ok := step.(error); ok {
			return framing.WatchEvent{}, err
		}
		t.steps = t.steps[1:]
		switch step := step.(type) {
		case time.Duration:
			if !reflector.Sleep(t.ctx, step) {
				return framing.WatchEvent{}, t.ctx.Err()
			}
		case framing.WatchEvent:
			t.activity()
			return step, t.ctx.Err()
		case alive:
			t.activity()
		}
	}
	<-t.ctx.Done()
	return framing.WatchEvent{}, t.ctx.Err()
}

// Frames, as the wire spells them.
func frame(kind, name string, version int) framing.WatchEvent {
	return framing.WatchEvent{Type: kind, Object: thing(name, version)}
}

func thing(name string, version int) []byte {
	return fmt.Appendf(nil, `{"kind":"Thing","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":"%d"}}`, name, version)
}

func added(name string, version int) framing.WatchEvent    { return frame("ADDED", name, version) }
func modified(name string, version int) framing.WatchEvent { return frame("MODIFIED", name, version) }
func bookmark(version int) framing.WatchEvent              { return mark(version, false) }
func synced(version int) framing.WatchEvent                { return mark(version, true) }

func mark(version int, end bool) framing.WatchEvent {
	d := listwatch.Description{Kind: "Thing", APIVersion: "v1"}
	return framing.FromEvent(listwatch.NewBookmark(d, listwatch.Version(version), end))
}

func failed(status int) framing.WatchEvent { return framing.FromError(answered(status)) }

// Errors, as transports return them.
var errCut = &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "the stream was cut off", Err: io.ErrUnexpectedEOF}

func answered(status int) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.CodeOfHTTP(status), Remote: true, Status: status, Message: http.StatusText(status)}
}

// remote returns a Remote whose watches go to peers.
func remote(peers ...*peer) *Remote {
	r := &Remote{URL: "http://peer.test/things", Network: transport.Network{Dial: noNetwork}}
	for _, p := range peers {
		r.Transports = append(r.Transports, p)
	}
	return r
}

func noNetwork(context.Context, string, string) (net.Conn, error) { return nil, errCut }

// from is a watch of what follows version.
func from(version int) listwatch.Query {
	return listwatch.Query{Start: listwatch.At, Version: listwatch.Version(version), Bookmarks: true}
}

func watch(t testing.TB, r *Remote, q listwatch.Query) listwatch.Watcher {
	t.Helper()
	w, err := r.Watch(t.Context(), q)
	if err != nil {
		t.Fatalf("Watch: %v", err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// spell writes an event as ADDED/a@5, in parentheses where it is an initial one.
func spell(e listwatch.Event) string {
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

// wantEvents reads as many events as want names.
func wantEvents(t testing.TB, w listwatch.Watcher, want string) {
	t.Helper()
	n := len(strings.Fields(want))
	var got []string
	for len(got) < n {
		var batch [4]listwatch.Event
		k, err := w.Next(t.Context(), batch[:min(n-len(got), len(batch))])
		if err != nil {
			t.Fatalf("got %v, then error %v, want %s", got, err, want)
		}
		for _, e := range batch[:k] {
			got = append(got, spell(e))
		}
	}
	if got := strings.Join(got, " "); got != want {
		t.Fatalf("got events %s, want %s", got, want)
	}
}

// wantEnd reads the end of a watch.
func wantEnd(t testing.TB, w listwatch.Watcher, want error) {
	t.Helper()
	var batch [1]listwatch.Event
	n, err := w.Next(t.Context(), batch[:])
	if n > 0 {
		t.Fatalf("got %s, want error %v", spell(batch[0]), want)
	}
	if err != want && listwatch.CodeOf(err) != want {
		t.Fatalf("got error %v, want %v", err, want)
	}
}
