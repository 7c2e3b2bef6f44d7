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
)

func TestWatchResumesWithoutGapOrRepeat(t *testing.T) {
	tests := []struct {
		name   string
		first  []any
		from   string // what is resumed from
		second []any
		want   string
	}{
		{
			"the group of the last event may not be complete",
			[]any{added("a", 5), added("b", 6), errCut},
			"5",
			[]any{added("b", 6), added("c", 7)},
			"ADDED/a@5 ADDED/b@6 ADDED/c@7",
		},
		{
			"a group that was cut is completed",
			[]any{added("a", 5), modified("b", 6), modified("c", 6), errCut},
			"5",
			[]any{modified("a", 6), modified("b", 6), modified("c", 6), modified("d", 6), added("e", 7)},
			"ADDED/a@5 MODIFIED/b@6 MODIFIED/c@6 MODIFIED/a@6 MODIFIED/d@6 ADDED/e@7",
		},
		{
			"a bookmark completes a group",
			[]any{added("a", 5), bookmark(5), errCut},
			"5",
			[]any{added("b", 6)},
			"ADDED/a@5 BOOKMARK@5 ADDED/b@6",
		},
		{
			"a bookmark beyond moves the version",
			[]any{added("a", 5), bookmark(90), errCut},
			"90",
			[]any{added("b", 91)},
			"ADDED/a@5 BOOKMARK@90 ADDED/b@91",
		},
		{
			"an event leaves the version at the bookmark before it",
			[]any{added("a", 5), bookmark(90), added("b", 91), errCut},
			"90",
			[]any{added("b", 91), added("c", 92)},
			"ADDED/a@5 BOOKMARK@90 ADDED/b@91 ADDED/c@92",
		},
		{
			"a bookmark before what was delivered is not shown",
			[]any{added("a", 5), added("b", 9), errCut},
			"5",
			[]any{bookmark(7), added("b", 9), added("c", 10)},
			"ADDED/a@5 ADDED/b@9 ADDED/c@10",
		},
		{"nothing came", []any{errCut}, "1", []any{added("a", 2)}, "ADDED/a@2"},
		{"a clean end", []any{added("a", 5), io.EOF}, "1", []any{added("a", 5), added("b", 6)}, "ADDED/a@5 ADDED/b@6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := inTurn(says(tt.first...), says(tt.second...))
				wantEvents(t, watch(t, remote(p), from(1)), tt.want)
				if got, want := p.versions(), "1 "+tt.from; got != want {
					t.Errorf("watched from %s, want %s", got, want)
				}
			})
		})
	}
}

func TestAThirdStreamGoesOnWhereTheSecondWasCutInAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(
			says(added("a", 5), modified("b", 6), errCut),
			says(modified("b", 6), modified("c", 6), errCut),
			says(modified("b", 6), modified("c", 6), modified("d", 6), added("e", 7), errCut),
			says(added("e", 7), added("f", 8)),
		)
		wantEvents(t, watch(t, remote(p), from(1)), "ADDED/a@5 MODIFIED/b@6 MODIFIED/c@6 MODIFIED/d@6 ADDED/e@7 ADDED/f@8")
		if got, want := p.versions(), "1 5 5 6"; got != want {
			t.Errorf("watched from %s, want %s", got, want)
		}
	})
}

// initial/cut-short.
func TestWatchStartsOverWhereNothingOfTheInitialEventsWasRead(t *testing.T) {
	for _, cut := range []error{errCut, io.EOF} {
		synctest.Test(t, func(t *testing.T) {
			p := inTurn(says(added("a", 1), added("b", 2), cut), says(added("b", 3), synced(4)))
			w := watch(t, remote(p), listwatch.Query{Bookmarks: true})
			time.Sleep(time.Minute)
			wantEvents(t, w, "(ADDED/b@3) SYNCED@4")
		})
	}
}

func TestWatchThatStartsOverMayHaveToList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(says(added("a", 1), errCut), refuses(answered(422)), refuses(answered(422)), refuses(answered(503)), says(added("c", 8)))
		r := remote(p)
		serveLists(r, func(n int) answer {
			if n == 0 {
				return answer{status: 503}
			}
			return answer{status: 200, body: listOf(7, "a", "b")}
		})
		w := watch(t, r, listwatch.Query{Bookmarks: true})
		time.Sleep(time.Minute)
		wantEvents(t, w, "(ADDED/a@1) (ADDED/b@2) SYNCED@7 ADDED/c@8")
		if got := p.versions(); got != "   7 7" {
			t.Errorf("watched from %q", got)
		}
	})
}

func TestWatchExpiresWhereSomeOfTheInitialEventsWereRead(t *testing.T) {
	dialled := &listwatch.Error{Code: listwatch.Unavailable, Op: "dial", Err: io.EOF}
	for _, cut := range []error{errCut, io.EOF, dialled} {
		synctest.Test(t, func(t *testing.T) {
			p := always(says(added("a", 1), time.Second, added("b", 2), time.Second, cut))
			w := watch(t, remote(p), listwatch.Query{})
			wantEvents(t, w, "(ADDED/a@1)")
			wantEvents(t, w, "(ADDED/b@2)")
			wantEnd(t, w, listwatch.Expired)
			if _, err := w.Next(t.Context(), make([]listwatch.Event, 1)); errors.Is(err, io.EOF) {
				t.Errorf("%v looks like a clean end", err)
			}
			if n := len(p.seen()); n != 1 {
				t.Errorf("dialled %d times, want 1", n)
			}
		})
	}
}

// error/no-retry-on-4xx.
func TestWhatTheReaderMustActOnEndsTheWatch(t *testing.T) {
	codes := map[int]listwatch.Code{
		400: listwatch.Invalid, 401: listwatch.Unauthorized, 403: listwatch.Forbidden, 404: listwatch.NotFound,
		406: listwatch.Unsupported, 410: listwatch.Expired, 422: listwatch.Invalid,
	}
	for status, code := range codes {
		for how, scripts := range map[string][]script{
			"in the stream": {says(added("a", 2), added("b", 3), failed(status))},
			"on a resume":   {says(added("a", 2), added("b", 3), errCut), refuses(answered(status))},
		} {
			synctest.Test(t, func(t *testing.T) {
				p := inTurn(scripts...)
				w := watch(t, remote(p), from(1))
				wantEvents(t, w, "ADDED/a@2 ADDED/b@3")
				wantEnd(t, w, code)
				wantEnd(t, w, code)
				time.Sleep(time.Hour)
				if n := len(p.seen()); n != len(scripts) {
					t.Errorf("%d %s: dialled %d times, want %d", status, how, n, len(scripts))
				}
			})
		}
	}
}

func TestWhatTimeMendsIsTriedAgain(t *testing.T) {
	slow := framing.FromError(&listwatch.Error{Code: listwatch.TooSlow, Message: "too slow"})
	for name, s := range map[string]script{
		"ERROR 429": says(failed(429)), "ERROR 500": says(failed(500)), "ERROR 503": says(failed(503)), "ERROR too slow": says(slow),
		"429": refuses(answered(429)), "500": refuses(answered(500)), "502": refuses(answered(502)), "503": refuses(answered(503)),
		"504": refuses(answered(504)), "refused": refuses(errCut),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := inTurn(says(added("a", 2), errCut), s, s, s, s, says(added("a", 2), added("b", 3)))
				wantEvents(t, watch(t, remote(p), from(1)), "ADDED/a@2 ADDED/b@3")
			})
		})
	}
}

func TestWhatIsNoProtocolIsTriedAgainOnce(t *testing.T) {
	torn := &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: "no JSON"}
	for name, bad := range map[string]any{
		"from the transport": torn, "no name": added("", 3), "no version": added("b", 0), "a version that is past": added("b", 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := inTurn(says(added("a", 2), bookmark(2), bad), says(added("b", 3), added("c", 4)))
				wantEvents(t, watch(t, remote(p), from(1)), "ADDED/a@2 BOOKMARK@2 ADDED/b@3 ADDED/c@4")
			})
			synctest.Test(t, func(t *testing.T) {
				p := inTurn(says(added("a", 2), bookmark(2), bad), says(bad))
				w := watch(t, remote(p), from(1))
				wantEvents(t, w, "ADDED/a@2 BOOKMARK@2")
				wantEnd(t, w, listwatch.Corrupt)
				if got := p.versions(); got != "1 2" {
					t.Errorf("watched from %s, want 1 2: the version must not pass what was not delivered", got)
				}
			})
		})
	}
}

// event/unknown-type and resume/rv-opaque-client.
func TestWhatThisPackageCannotKnowEndsTheWatch(t *testing.T) {
	foreign := framing.WatchEvent{Type: "ADDED", Object: []byte(`{"metadata":{"name":"a","resourceVersion":"12-3"}}`)}
	for _, f := range []framing.WatchEvent{frame("FUTURE", "b", 3), foreign} {
		synctest.Test(t, func(t *testing.T) {
			p := always(says(added("a", 2), f))
			w := watch(t, remote(p), from(1))
			wantEvents(t, w, "ADDED/a@2")
			wantEnd(t, w, listwatch.Unsupported)
			if n := len(p.seen()); n != 1 {
				t.Errorf("dialled %d times, want 1", n)
			}
		})
	}
}

func TestAVersionOfTheFutureIsTheReadersConcernUnlessTheServerHadIt(t *testing.T) {
	behind := framing.FromError(&listwatch.Error{Code: listwatch.NotYet, Message: "Too large resource version"})
	synctest.Test(t, func(t *testing.T) {
		wantEnd(t, watch(t, remote(always(says(behind))), from(1)), listwatch.NotYet)
	})
	synctest.Test(t, func(t *testing.T) {
		// Another replica, which catches up.
		p := inTurn(says(added("a", 2), errCut), says(behind), says(behind), says(added("a", 2), added("b", 3)))
		wantEvents(t, watch(t, remote(p), from(1)), "ADDED/a@2 ADDED/b@3")
	})
	synctest.Test(t, func(t *testing.T) {
		// resume/store-reset: a server restored from an older state.
		start := time.Now()
		w := watch(t, remote(inTurn(says(added("a", 2), errCut), says(behind))), from(1))
		wantEvents(t, w, "ADDED/a@2")
		wantEnd(t, w, listwatch.Expired)
		if took := time.Since(start); took < reflector.LagTolerance || took > 3*reflector.LagTolerance {
			t.Errorf("it took %v, want a little more than %v", took, reflector.LagTolerance)
		}
	})
}

func TestAnotherEpochExpiresTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(script{epoch: "one", steps: []any{added("a", 2), errCut}}, script{steps: []any{errCut}}, script{epoch: "two"})
		r := remote(p)
		w := watch(t, r, from(1))
		wantEvents(t, w, "ADDED/a@2")
		wantEnd(t, w, listwatch.Expired)
		if got := len(p.seen()); got != 3 {
			t.Errorf("dialled %d times, want 3: an answer without epoch tells nothing", got)
		}
		watch(t, r, from(1))
	})
}

func TestAVersionListedInAnotherEpochIsExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := remote(always(script{epoch: "two"}))
		serveLists(r, func(int) answer {
			return answer{status: 200, body: listOf(7), header: http.Header{"Listwatch-Epoch": {"one"}}}
		})
		page, err := r.List(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Watch(t.Context(), from(int(page.Version)))
		if !errors.Is(err, listwatch.Expired) {
			t.Errorf("got error %v, want %v", err, listwatch.Expired)
		}
		watch(t, r, from(int(page.Version)))
	})
}

// auth/token-refresh.
func TestA401IsTriedAgainWithFreshCredentials(t *testing.T) {
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
		{"on a resume", []script{says(added("a", 2), errCut), refuses(answered(401)), says(added("b", 3))}, "0 0 1"},
		{"in the stream", []script{says(added("a", 2), failed(401)), says(added("b", 3))}, "0 1"},
		{"at once", []script{refuses(answered(401)), says(added("a", 2), added("b", 3))}, "0 1"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			token.Store(0)
			p := inTurn(tt.scripts...)
			r := remote(p)
			r.Header = header
			wantEvents(t, watch(t, r, from(1)), "ADDED/a@2 ADDED/b@3")
			got := ""
			for _, d := range p.seen() {
				got += " " + d.header.Get("Authorization")[len("Bearer "):]
			}
			if got[1:] != tt.tokens {
				t.Errorf("%s: sent tokens%s, want %s", tt.name, got, tt.tokens)
			}
		})
	}
	for _, s := range []script{refuses(answered(401)), says(failed(401))} {
		synctest.Test(t, func(t *testing.T) {
			p := inTurn(says(added("a", 2), errCut), s)
			r := remote(p)
			r.Header = header
			w := watch(t, r, from(1))
			wantEvents(t, w, "ADDED/a@2")
			wantEnd(t, w, listwatch.Unauthorized)
			if n := len(p.seen()); n != 3 {
				t.Errorf("dialled %d times, want 3: refreshed once", n)
			}
		})
	}
}

func TestCredentialsThatCannotBeHadAreAnError(t *testing.T) {
	broken := errors.New("the token service is down")
	r := remote(always(says()))
	r.Header = func(context.Context, bool) (http.Header, error) { return nil, broken }
	_, err := r.Watch(t.Context(), from(1))
	if !errors.Is(err, broken) || !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("got error %v, want %v as %v", err, broken, listwatch.Unavailable)
	}
}

// framing/sse-204.
func TestA204EndsTheWatchForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := &listwatch.Error{Code: listwatch.Unknown, Remote: true, Status: http.StatusNoContent, Err: io.EOF}
		p := inTurn(says(added("a", 2), errCut), refuses(stopped))
		w := watch(t, remote(p), from(1))
		wantEvents(t, w, "ADDED/a@2")
		wantEnd(t, w, io.EOF)
		if n := len(p.seen()); n != 2 {
			t.Errorf("dialled %d times, want 2", n)
		}
	})
}
