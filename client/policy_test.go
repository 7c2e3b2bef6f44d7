package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/internal/testkit"
)

// Conformance case error/no-retry-on-4xx.
func TestClientErrorsEndTheWatch(t *testing.T) {
	codes := map[int]listwatch.Code{
		400: listwatch.Invalid, 401: listwatch.Unauthorized, 403: listwatch.Forbidden, 404: listwatch.NotFound,
		406: listwatch.Unsupported, 410: listwatch.Expired, 422: listwatch.Invalid,
	}
	for status, code := range codes {
		for how, scripts := range map[string][]script{
			"as an event":   {sends(added("a", 2), added("b", 3), errorEvent(status))},
			"as a response": {sends(added("a", 2), added("b", 3), errConnectionLost), refuses(statusError(status))},
		} {
			synctest.Test(t, func(t *testing.T) {
				p := sequence(scripts...)
				w := testkit.Watch(t, newRemote(p), watchFrom(1))
				wantEvents(t, w, "ADDED/a@2 ADDED/b@3")
				wantError(t, w, code)
				wantError(t, w, code)
				time.Sleep(time.Hour)
				if n := len(p.requests()); n != len(scripts) {
					t.Errorf("%d %s: %d requests, want %d", status, how, n, len(scripts))
				}
			})
		}
	}
}

func TestTemporaryErrorsAreRetried(t *testing.T) {
	slow := framing.FromError(&listwatch.Error{Code: listwatch.TooSlow, Message: "too slow"})
	for name, s := range map[string]script{
		"ERROR 429": sends(errorEvent(429)), "ERROR 500": sends(errorEvent(500)), "ERROR 503": sends(errorEvent(503)),
		"ERROR too slow": sends(slow),
		"429":            refuses(statusError(429)), "500": refuses(statusError(500)), "502": refuses(statusError(502)),
		"503": refuses(statusError(503)),
		"504": refuses(statusError(504)), "408": refuses(statusError(408)), "425": refuses(statusError(425)),
		"507": refuses(statusError(507)),
		"520": refuses(statusError(520)), "530": refuses(statusError(530)), "ERROR 408": sends(errorEvent(408)),
		"connection lost": refuses(errConnectionLost),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := sequence(sends(added("a", 2), errConnectionLost), s, s, s, s, sends(added("a", 2), added("b", 3)))
				wantEvents(t, testkit.Watch(t, newRemote(p), watchFrom(1)), "ADDED/a@2 ADDED/b@3")
			})
		})
	}
}

func TestMalformedEventsAreRetriedOnce(t *testing.T) {
	malformed := &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: "not JSON"}
	for name, bad := range map[string]any{
		"response": malformed, "no name": added("", 3), "no version": added("b", 0), "an old version": added("b", 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := sequence(sends(added("a", 2), bookmark(2), bad), sends(added("b", 3), added("c", 4)))
				wantEvents(t, testkit.Watch(t, newRemote(p), watchFrom(1)), "ADDED/a@2 BOOKMARK@2 ADDED/b@3 ADDED/c@4")
			})
			synctest.Test(t, func(t *testing.T) {
				p := sequence(sends(added("a", 2), bookmark(2), bad), sends(bad))
				w := testkit.Watch(t, newRemote(p), watchFrom(1))
				wantEvents(t, w, "ADDED/a@2 BOOKMARK@2")
				wantError(t, w, listwatch.Corrupt)
				if got := p.versions(); got != "1 2" {
					t.Errorf("watched from versions %s, want 1 2", got)
				}
			})
		})
	}
}

// Conformance cases event/unknown-type and resume/rv-opaque-client.
func TestUnknownEventsEndTheWatch(t *testing.T) {
	opaque := framing.WatchEvent{Type: "ADDED", Object: []byte(`{"metadata":{"name":"a","resourceVersion":"12-3"}}`)}
	for _, f := range []framing.WatchEvent{frame("FUTURE", "b", 3), opaque} {
		synctest.Test(t, func(t *testing.T) {
			p := always(sends(added("a", 2), f))
			w := testkit.Watch(t, newRemote(p), watchFrom(1))
			wantEvents(t, w, "ADDED/a@2")
			wantError(t, w, listwatch.Unsupported)
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestNotYetIsRetriedForConfirmedVersions(t *testing.T) {
	notYet := framing.FromError(&listwatch.Error{Code: listwatch.NotYet, Message: "Too large resource version"})
	synctest.Test(t, func(t *testing.T) {
		wantError(t, testkit.Watch(t, newRemote(always(sends(notYet))), watchFrom(1)), listwatch.NotYet)
	})
	synctest.Test(t, func(t *testing.T) {
		// The client reconnects to a replica that lags.
		p := sequence(sends(added("a", 2), errConnectionLost), sends(notYet), sends(notYet),
			sends(added("a", 2), added("b", 3)))
		wantEvents(t, testkit.Watch(t, newRemote(p), watchFrom(1)), "ADDED/a@2 ADDED/b@3")
	})
	synctest.Test(t, func(t *testing.T) {
		// Conformance case resume/store-reset: the server was restored from a backup.
		start := time.Now()
		w := testkit.Watch(t, newRemote(sequence(sends(added("a", 2), errConnectionLost), sends(notYet))), watchFrom(1))
		wantEvents(t, w, "ADDED/a@2")
		wantError(t, w, listwatch.Expired)
		if took := time.Since(start); took < reflector.LagTolerance || took > 3*reflector.LagTolerance {
			t.Errorf("the watch expired after %v, want a little more than %v", took, reflector.LagTolerance)
		}
	})
}

func TestChangedEpochExpiresTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sequence(script{epoch: "one", steps: []any{added("a", 2), errConnectionLost}},
			script{steps: []any{errConnectionLost}}, script{epoch: "two"})
		r := newRemote(p)
		w := testkit.Watch(t, r, watchFrom(1))
		wantEvents(t, w, "ADDED/a@2")
		wantError(t, w, listwatch.Expired)
		if got := len(p.requests()); got != 3 {
			t.Errorf("%d requests, want 3: a response without an epoch changes nothing", got)
		}
		testkit.Watch(t, r, watchFrom(1))
	})
}

func TestVersionOfAnotherEpochIsExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote(always(script{epoch: "two"}))
		serveLists(r, func(int) listResponse {
			return listResponse{status: 200, body: listBodyOf(7), header: http.Header{"Listwatch-Epoch": {"one"}}}
		})
		page, err := r.List(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Watch(t.Context(), watchFrom(int(page.Version)))
		if !errors.Is(err, listwatch.Expired) {
			t.Errorf("got error %v, want %v", err, listwatch.Expired)
		}
		testkit.Watch(t, r, watchFrom(int(page.Version)))
	})
}

// Conformance case auth/token-refresh.
func TestUnauthorizedIsRetriedWithFreshHeader(t *testing.T) {
	var token atomic.Int64
	header := func(_ context.Context, refresh bool) (http.Header, error) {
		if refresh {
			token.Add(1)
		}
		return http.Header{"Authorization": {fmt.Sprint("Bearer ", token.Load())}}, nil
	}
	tests := []struct {
		name    string
		scripts []script
		tokens  string
	}{
		{"on resuming", []script{
			sends(added("a", 2), errConnectionLost), refuses(statusError(401)),
			sends(added("b", 3)),
		}, "0 0 1"},
		{"as an event", []script{sends(added("a", 2), errorEvent(401)), sends(added("b", 3))}, "0 1"},
		{"on the first request", []script{refuses(statusError(401)), sends(added("a", 2), added("b", 3))}, "0 1"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			token.Store(0)
			p := sequence(tt.scripts...)
			r := newRemote(p)
			r.Header = header
			wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2 ADDED/b@3")
			got := ""
			for _, r := range p.requests() {
				got += " " + r.header.Get("Authorization")[len("Bearer "):]
			}
			if got[1:] != tt.tokens {
				t.Errorf("%s: sent tokens%s, want %s", tt.name, got, tt.tokens)
			}
		})
	}
	for _, s := range []script{refuses(statusError(401)), sends(errorEvent(401))} {
		synctest.Test(t, func(t *testing.T) {
			p := sequence(sends(added("a", 2), errConnectionLost), s)
			r := newRemote(p)
			r.Header = header
			w := testkit.Watch(t, r, watchFrom(1))
			wantEvents(t, w, "ADDED/a@2")
			wantError(t, w, listwatch.Unauthorized)
			if n := len(p.requests()); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	}
}

// A server ends a watch when its token expires. If no object changes, that happens many times at
// the same version, so the client must not limit its retries per version.
func TestQuietWatchSurvivesExpiringTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expires := sends(time.Hour, errorEvent(401))
		p := sequence(expires, expires, expires, sends(added("a", 2)))
		r := newRemote(p)
		r.IdleTimeout = -1
		refreshed := 0
		r.Header = func(_ context.Context, refresh bool) (http.Header, error) {
			if refresh {
				refreshed++
			}
			return nil, nil
		}
		wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2")
		if refreshed != 3 {
			t.Errorf("refreshed the token %d times, want 3", refreshed)
		}
	})
}

func TestRoundTripperMayHaveNewCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote(sequence(sends(added("a", 2), errorEvent(401)), sends(added("b", 3), errorEvent(401)),
			refuses(statusError(401))))
		r.HTTPClient = new(http.Client)
		w := testkit.Watch(t, r, watchFrom(1))
		wantEvents(t, w, "ADDED/a@2 ADDED/b@3")
		wantError(t, w, listwatch.Unauthorized)
	})
}

func TestHeaderErrorIsReturned(t *testing.T) {
	unavailable := errors.New("the token service is down")
	r := newRemote(always(sends()))
	r.Header = func(context.Context, bool) (http.Header, error) { return nil, unavailable }
	_, err := r.Watch(t.Context(), watchFrom(1))
	if !errors.Is(err, unavailable) || !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("got error %v, want %v as %v", err, unavailable, listwatch.Unavailable)
	}
}

// The source of the credentials may be a program that hangs.
func TestHangingHeaderFailsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newRemote(always(sends()))
		r.Header = func(context.Context, bool) (http.Header, error) { <-release; return nil, nil }
		for name, request := range map[string]func() error{
			"list":  func() error { _, err := r.List(t.Context(), listwatch.Query{}); return err },
			"watch": func() error { _, err := r.Watch(t.Context(), watchFrom(1)); return err },
			"get":   func() error { _, err := r.Get(t.Context(), listwatch.Key{Name: "a"}); return err },
		} {
			start := time.Now()
			if err := request(); !errors.Is(err, listwatch.Unavailable) {
				t.Errorf("%s: got error %v, want Unavailable", name, err)
			}
			if took := time.Since(start); took > DefaultIdleTimeout+time.Second {
				t.Errorf("%s: failed after %v, want at most %v", name, took, DefaultIdleTimeout)
			}
		}
		close(release)
		synctest.Wait()
	})
}

// Conformance case framing/sse-204.
func TestNoContentEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noContent := &listwatch.Error{Code: listwatch.Unknown, Remote: true, Status: http.StatusNoContent, Err: io.EOF}
		p := sequence(sends(added("a", 2), errConnectionLost), refuses(noContent))
		w := testkit.Watch(t, newRemote(p), watchFrom(1))
		wantEvents(t, w, "ADDED/a@2")
		wantError(t, w, io.EOF)
		if n := len(p.requests()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}
