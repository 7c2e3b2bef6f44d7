package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
)

func namedTransport(name string, scripts ...script) *scriptedTransport {
	p := sequence(scripts...)
	p.name = name
	return p
}

var (
	errNotHTTP2 = &listwatch.Error{
		Code: listwatch.Unsupported, Op: "dial",
		Message: "the server speaks HTTP/1.1, want HTTP/2",
	}
	errDialEOF           = &listwatch.Error{Code: listwatch.Unavailable, Op: "dial", Err: io.EOF}
	errConnectionRefused = &listwatch.Error{
		Code: listwatch.Unavailable, Op: "dial",
		Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	}
)

// Conformance case handshake/fallback.
func TestFailedTransportIsSkipped(t *testing.T) {
	for name, refusal := range map[string]error{
		"not HTTP/2": errNotHTTP2, "lost": errDialEOF, "403": statusError(403), "400": statusError(400),
		"405": statusError(405),
		"426": statusError(426), "501": statusError(501), "505": statusError(505),
	} {
		synctest.Test(t, func(t *testing.T) {
			ws, h1 := namedTransport("websocket", refuses(refusal)),
				namedTransport("chunked", sends(added("a", 2), added("b", 3), errConnectionLost),
					sends(added("b", 3), added("c", 4)))
			var failed []string
			r := newRemote(ws, h1)
			r.Trace = &Trace{TransportFailed: func(name string, err error) { failed = append(failed, name) }}
			wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2 ADDED/b@3 ADDED/c@4")
			if len(ws.requests()) != 1 || len(h1.requests()) != 2 {
				t.Errorf("%s: %d requests over websocket and %d over chunked, want 1 and 2", name, len(ws.requests()),
					len(h1.requests()))
			}
			if !slices.Equal(failed, []string{"websocket"}) {
				t.Errorf("%s: TransportFailed was called for %v, want websocket", name, failed)
			}
		})
	}
}

func TestDemotedTransportIsRetriedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h2 := namedTransport("h2", refuses(errNotHTTP2), sends(added("b", 3)))
		h1 := namedTransport("chunked", sends(added("a", 2), activity{}, demotionPeriod, errConnectionLost))
		r := newRemote(h2, h1)
		r.IdleTimeout = -1
		wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2 ADDED/b@3")
		if len(h2.requests()) != 2 || len(h1.requests()) != 1 {
			t.Errorf("%d requests over h2 and %d over chunked, want 2 and 1", len(h2.requests()), len(h1.requests()))
		}
	})
}

func TestRequestErrorsDoNotChangeTheTransport(t *testing.T) {
	for _, err := range []*listwatch.Error{
		statusError(401), statusError(404), statusError(410), statusError(429),
		statusError(503), errConnectionRefused,
	} {
		first, second := namedTransport("websocket", refuses(err)), namedTransport("chunked", sends())
		_, got := newRemote(first, second).Watch(t.Context(), watchFrom(1))
		if e := listwatch.AsError(got); e.Code != err.Code || e.Status != err.Status || len(second.requests()) != 0 {
			t.Errorf("got error %v and %d requests over the second transport, want %v and none", got,
				len(second.requests()), err)
		}
	}
	first, second := namedTransport("chunked", refuses(statusError(403))), namedTransport("websocket", sends())
	if _, err := newRemote(first, second).Watch(t.Context(), watchFrom(1)); !errors.Is(err, listwatch.Forbidden) {
		t.Errorf("got error %v, want %v, because over chunked a 403 concerns the request", err, listwatch.Forbidden)
	}
}

func TestAllTransportsFailedReturnsServerError(t *testing.T) {
	ws, h2 := namedTransport("websocket", refuses(statusError(403))), namedTransport("h2", refuses(errNotHTTP2))
	r := newRemote(h2, ws)
	_, err := r.Watch(t.Context(), watchFrom(1))
	if e := listwatch.AsError(err); e.Status != http.StatusForbidden {
		t.Errorf("got error %v, want the 403", err)
	}
	if order := r.state.fallback.order(); order[0].client != h2 {
		t.Errorf("%s is tried first now, want h2: if all transports fail none is demoted", order[0].client.Name())
	}
	if _, err := (&Remote{URL: "http://h/t", Transports: nil}).Watch(t.Context(),
		listwatch.Query{Continue: "x"}); err == nil {
		t.Error("got no error")
	}
}

func TestMalformedResponseDemotesTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		malformed := &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: "malformed chunk"}
		first, second := namedTransport("chunked", sends(added("a", 2), malformed)),
			namedTransport("websocket", sends(added("a", 2), added("b", 3)))
		wantEvents(t, testkit.Watch(t, newRemote(first, second), watchFrom(1)), "ADDED/a@2 ADDED/b@3")
		if len(second.requests()) != 1 {
			t.Error("the second response was not over websocket")
		}
	})
}

func TestEmptyResponsesDemoteTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The empty responses of the first transport stand for a proxy that holds back events.
		first, second := namedTransport("chunked", sends()), namedTransport("websocket", sends(added("a", 2)))
		wantEvents(t, testkit.Watch(t, newRemote(first, second), watchFrom(1)), "ADDED/a@2")
		if len(first.requests()) != 2 {
			t.Errorf("%d requests over chunked, want 2", len(first.requests()))
		}
	})
}

// A proxy that swallows the handshake of a transport must not keep a client from the other
// transports.
func TestSilentTransportIsDemoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := namedTransport("websocket", script{hangs: true}),
			namedTransport("chunked", sends(added("a", 2), errConnectionLost), sends(added("b", 3)))
		r := newRemote(first, second)
		_, err := r.Watch(t.Context(), watchFrom(1))
		if !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("got %v, want %v after the idle timeout", err, listwatch.Unavailable)
		}
		begun := time.Now()
		wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2 ADDED/b@3")
		if time.Since(begun) > time.Minute || len(first.requests()) != 1 {
			t.Errorf("after %v there were %d requests over the silent transport, want 1", time.Since(begun),
				len(first.requests()))
		}
	})
}

// Two brief watches demote their transport. If the next one is silent, the third brief watch, which
// leads to a list, must not wait until the demotion ends.
func TestDemotionDelaysNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h1 := namedTransport("chunked", sends(io.EOF))
		r := newRemote(h1, namedTransport("websocket", script{hangs: true}))
		begun := time.Now()
		wantError(t, testkit.Watch(t, r, watchFrom(1)), listwatch.Expired)
		if waited := time.Since(begun); waited > DefaultIdleTimeout+time.Minute || len(h1.requests()) != 3 {
			t.Errorf("the watch expired after %v and %d requests, want about %v and 3", waited, len(h1.requests()),
				DefaultIdleTimeout)
		}
	})
}

// An ERROR event was delivered, so the transport works, whatever the server complains about.
func TestErrorEventsDoNotDemoteTheTransport(t *testing.T) {
	for _, status := range []int{401, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			fails := sends(2*time.Second, errorEvent(status))
			first, second := namedTransport("chunked", fails, fails, fails, sends(added("a", 2))),
				namedTransport("websocket", sends(added("a", 2)))
			r := newRemote(first, second)
			r.Header = func(context.Context, bool) (http.Header, error) { return nil, nil }
			wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2")
			if len(first.requests()) != 4 || len(second.requests()) != 0 {
				t.Errorf("%d: %d requests over chunked and %d over websocket, want 4 and 0", status,
					len(first.requests()), len(second.requests()))
			}
		})
	}
}

func TestDefaultTransports(t *testing.T) {
	for url, want := range map[string][]string{
		"http://h/t":  {"chunked", "websocket"},
		"https://h/t": {"h2", "chunked", "websocket"},
	} {
		r := &Remote{URL: url}
		r.Close()
		var got []string
		for _, candidate := range r.state.fallback.order() {
			got = append(got, candidate.client.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the transports are %v, want %v", url, got, want)
		}
	}
}
