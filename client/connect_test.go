package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
)

var stateQuery = listwatch.Query{InitialEvents: listwatch.InitialEventsYes, Bookmarks: true}

func TestConnectionsDoNotReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []error{io.EOF, errConnectionLost} {
			p := always(sends(added("a", 3), synced(5), end))
			w, err := newRemote(p).Connect(0).Watch(t.Context(), stateQuery)
			if err != nil {
				t.Fatal(err)
			}
			wantEvents(t, w, "(ADDED/a@3) SYNCED@5")
			for range 2 {
				if _, err := w.Next(t.Context(), make([]listwatch.Event, 1)); err != end {
					t.Errorf("got error %v, want %v", err, end)
				}
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			w.Close()
		}
	})
}

func TestConnectionsCompareEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epochs := []string{"one", "one", "two", "two", "two", "two"}
		p := &scriptedTransport{scriptFor: func(n int) script {
			s := sends(added("a", 3), synced(5), io.EOF)
			s.epoch = epochs[n]
			return s
		}}
		s := newRemote(p).Connect(0)
		resume := watchFrom(5)
		for i, q := range []listwatch.Query{stateQuery, resume, resume, resume, stateQuery, resume} {
			w, err := s.Watch(t.Context(), q)
			if want := i == 2 || i == 3; errors.Is(err, listwatch.Expired) != want {
				t.Errorf("request %d: got error %v, want Expired: %v", i, err, want)
			}
			if err == nil {
				w.Close()
			}
		}
	})
}

// A continue token of another epoch would mix two histories in one list.
func TestPagesOfTwoEpochsExpire(t *testing.T) {
	r := newRemote()
	epochs := []string{"one", "one", "", "two", "two"}
	serveLists(r, func(n int) listResponse {
		return listResponse{200, listBodyOf(5, "a"), http.Header{transport.EpochHeader: {epochs[n]}}}
	})
	s := r.Connect(0)
	for i, token := range []string{"", "next", "next", "next", ""} {
		_, err := s.List(t.Context(), listwatch.Query{Continue: token})
		if want := i == 3; errors.Is(err, listwatch.Expired) != want || err != nil && !want {
			t.Errorf("request %d: got error %v, want Expired: %v", i, err, want)
		}
	}
}

func TestConnectionsNeedAStart(t *testing.T) {
	p := always(sends())
	q := listwatch.Query{InitialEvents: listwatch.InitialEventsNo}
	if _, err := newRemote(p).Connect(0).Watch(t.Context(), q); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got error %v, want Invalid", err)
	}
}

func TestConnectTimeoutIsSentAndNotTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(sends())
		r := newRemote(p)
		r.URL += "?timeoutSeconds=600"
		r.Trace = &Trace{Opened: func(string, listwatch.Version) { t.Error("Opened was called") }}
		w, err := r.Connect(2100*time.Millisecond).Watch(t.Context(), watchFrom(5))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if got := p.requests()[0].query["timeoutSeconds"]; len(got) != 1 || got[0] != "3" {
			t.Errorf("timeoutSeconds is %q, want 3", got)
		}
	})
}

// All calls of Next must have one context.
func TestEarlierContextClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRemote(always(sends(synced(5)))).Connect(0).(*connections)
		w, err := c.Watch(t.Context(), stateQuery)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		events := make([]listwatch.Event, 1)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := w.Next(ctx, events); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if _, err := w.Next(t.Context(), events); !errors.Is(err, errInterrupted) {
			t.Errorf("got error %v, want %v", err, errInterrupted)
		}
		if c.unproductive != 0 {
			t.Error("the server was blamed")
		}
	})
}

// A connection has only one reader, so the end of that reader's context ends the connection.
func TestEndOfContextClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newRemote(always(sends(synced(5)))).Connect(0).Watch(t.Context(), stateQuery)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		wantEvents(t, w, "SYNCED@5")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Next(ctx, make([]listwatch.Event, 1)); err != context.DeadlineExceeded {
			t.Errorf("got error %v, want that of the context", err)
		}
	})
}

func TestCloseInterruptsAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newRemote(always(sends())).Connect(0).Watch(t.Context(), watchFrom(5))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { w.Close() })
		wantError(t, w, io.EOF)
	})
}

// A slow reader must not make the connection look idle.
func TestIdleTimeoutIsPausedBetweenReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newRemote(always(sends(added("a", 6), added("b", 7)))).Connect(0).Watch(t.Context(), watchFrom(5))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		time.Sleep(3 * DefaultIdleTimeout)
		wantEvents(t, w, "ADDED/a@6")
		time.Sleep(3 * DefaultIdleTimeout)
		wantEvents(t, w, "ADDED/b@7")
		wantError(t, w, errIdle)
	})
}

// A filter embeds a Remote, as a program may do to change its events.
type filter struct {
	*Remote
	_ []string // makes the type incomparable
}

// unwrapping has a method Unwrap, which serves to find a description. Its events must still be
// read through the wrapper.
type unwrapping struct{ listwatch.Source }

func (u unwrapping) Unwrap() listwatch.Source { return u.Source }

func TestWrappersOfARemoteAreFollowed(t *testing.T) {
	r := newRemote()
	for name, s := range map[string]listwatch.Source{
		"embedded": &struct{ *Remote }{r}, "incomparable": filter{Remote: r}, "unwrapping": unwrapping{r},
	} {
		if got, policy := reflector.Direct(s); policy.Decide != nil {
			t.Errorf("%s: got the source %T, want the wrapper", name, got)
		}
	}
	got, policy := reflector.Direct(r)
	if got == listwatch.Source(r) {
		t.Errorf("got the source %T of a Remote, want its connections", got)
	}
	if policy.Decide == nil {
		t.Error("the connections of a Remote have no policy")
	}
}
