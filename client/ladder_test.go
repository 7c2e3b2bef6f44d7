package client

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
)

func named(name string, scripts ...script) *peer {
	p := inTurn(scripts...)
	p.name = name
	return p
}

var (
	errNotSpoken = &listwatch.Error{Code: listwatch.Unsupported, Op: "dial", Message: "the server speaks HTTP/1.1, want HTTP/2"}
	errBroken    = &listwatch.Error{Code: listwatch.Unavailable, Op: "dial", Err: io.EOF}
	errNobody    = &listwatch.Error{Code: listwatch.Unavailable, Op: "dial", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
)

// handshake/fallback.
func TestATransportThatDoesNotWorkIsPassedOver(t *testing.T) {
	for name, refusal := range map[string]error{
		"not spoken": errNotSpoken, "broken": errBroken, "403": answered(403), "400": answered(400), "405": answered(405),
		"426": answered(426), "501": answered(501), "505": answered(505),
	} {
		synctest.Test(t, func(t *testing.T) {
			ws, h1 := named("websocket", refuses(refusal)), named("chunked", says(added("a", 2), added("b", 3), errCut), says(added("b", 3), added("c", 4)))
			var refused []string
			r := remote(ws, h1)
			r.Trace = &Trace{TransportFailed: func(name string, err error) { refused = append(refused, name) }}
			wantEvents(t, watch(t, r, from(1)), "ADDED/a@2 ADDED/b@3 ADDED/c@4")
			if len(ws.seen()) != 1 || len(h1.seen()) != 2 {
				t.Errorf("%s: dialled websocket %d times and chunked %d times, want 1 and 2: what works is remembered", name, len(ws.seen()), len(h1.seen()))
			}
			if !slices.Equal(refused, []string{"websocket"}) {
				t.Errorf("%s: told of %v, want websocket", name, refused)
			}
		})
	}
}

func TestTheBestTransportIsTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h2 := named("h2", refuses(errNotSpoken), says(added("b", 3)))
		h1 := named("chunked", says(added("a", 2), alive{}, demotionPeriod, errCut))
		r := remote(h2, h1)
		r.IdleTimeout = -1
		wantEvents(t, watch(t, r, from(1)), "ADDED/a@2 ADDED/b@3")
		if len(h2.seen()) != 2 || len(h1.seen()) != 1 {
			t.Errorf("dialled h2 %d times and chunked %d times, want 2 and 1", len(h2.seen()), len(h1.seen()))
		}
	})
}

func TestWhatTheServerMeansIsNotAskedOnAnotherTransport(t *testing.T) {
	for _, err := range []*listwatch.Error{answered(401), answered(404), answered(410), answered(429), answered(503), errNobody} {
		first, second := named("websocket", refuses(err)), named("chunked", says())
		_, got := remote(first, second).Watch(t.Context(), from(1))
		if e := listwatch.AsError(got); e.Code != err.Code || e.Status != err.Status || len(second.seen()) != 0 {
			t.Errorf("got error %v after %d more dials, want %v at once", got, len(second.seen()), err)
		}
	}
	first, second := named("chunked", refuses(answered(403))), named("websocket", says())
	if _, err := remote(first, second).Watch(t.Context(), from(1)); !errors.Is(err, listwatch.Forbidden) {
		t.Errorf("got error %v, want %v: over chunked 403 means the request", err, listwatch.Forbidden)
	}
}

func TestWhereEveryTransportIsRefusedTheServersWordsCount(t *testing.T) {
	ws, h2 := named("websocket", refuses(answered(403))), named("h2", refuses(errNotSpoken))
	r := remote(h2, ws)
	_, err := r.Watch(t.Context(), from(1))
	if e := listwatch.AsError(err); e.Status != http.StatusForbidden {
		t.Errorf("got error %v, want the 403", err)
	}
	if order := r.state.fallback.order(); order[0].client != h2 {
		t.Errorf("%s comes first now; where all are refused none is at fault", order[0].client.Name())
	}
	if _, err := (&Remote{URL: "http://h/t", Transports: nil}).Watch(t.Context(), listwatch.Query{Continue: "x"}); err == nil {
		t.Error("got no error")
	}
}

func TestATransportThatBreaksItsProtocolStepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		torn := &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: "the chunked coding is broken"}
		first, second := named("chunked", says(added("a", 2), torn)), named("websocket", says(added("a", 2), added("b", 3)))
		wantEvents(t, watch(t, remote(first, second), from(1)), "ADDED/a@2 ADDED/b@3")
		if len(second.seen()) != 1 {
			t.Error("want the second stream over websocket")
		}
	})
}

func TestATransportThatBringsNothingTwiceStepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A proxy that holds the response back.
		first, second := named("chunked", says()), named("websocket", says(added("a", 2)))
		wantEvents(t, watch(t, remote(first, second), from(1)), "ADDED/a@2")
		if len(first.seen()) != 2 {
			t.Errorf("dialled chunked %d times, want 2", len(first.seen()))
		}
	})
}

func TestDefaultLadder(t *testing.T) {
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
			t.Errorf("%s: got %v, want %v", url, got, want)
		}
	}
}
