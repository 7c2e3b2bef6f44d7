package client

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
)

func TestWatchResumesWithoutGapsOrRepeats(t *testing.T) {
	tests := []struct {
		name  string
		first []any
		// from is the version at which the second request must start.
		from   string
		second []any
		want   string
	}{
		{
			"the last version may be incomplete",
			[]any{added("a", 5), added("b", 6), errConnectionLost},
			"5",
			[]any{added("b", 6), added("c", 7)},
			"ADDED/a@5 ADDED/b@6 ADDED/c@7",
		},
		{
			"an incomplete version is completed",
			[]any{added("a", 5), modified("b", 6), modified("c", 6), errConnectionLost},
			"5",
			[]any{modified("a", 6), modified("b", 6), modified("c", 6), modified("d", 6), added("e", 7)},
			"ADDED/a@5 MODIFIED/b@6 MODIFIED/c@6 MODIFIED/a@6 MODIFIED/d@6 ADDED/e@7",
		},
		{
			"a bookmark completes a version",
			[]any{added("a", 5), bookmark(5), errConnectionLost},
			"5",
			[]any{added("b", 6)},
			"ADDED/a@5 BOOKMARK@5 ADDED/b@6",
		},
		{
			"a later bookmark advances the version",
			[]any{added("a", 5), bookmark(90), errConnectionLost},
			"90",
			[]any{added("b", 91)},
			"ADDED/a@5 BOOKMARK@90 ADDED/b@91",
		},
		{
			"an event does not advance the version at once",
			[]any{added("a", 5), bookmark(90), added("b", 91), errConnectionLost},
			"90",
			[]any{added("b", 91), added("c", 92)},
			"ADDED/a@5 BOOKMARK@90 ADDED/b@91 ADDED/c@92",
		},
		{
			"an old bookmark is dropped",
			[]any{added("a", 5), added("b", 9), errConnectionLost},
			"5",
			[]any{bookmark(7), added("b", 9), added("c", 10)},
			"ADDED/a@5 ADDED/b@9 ADDED/c@10",
		},
		{"no event was received", []any{errConnectionLost}, "1", []any{added("a", 2)}, "ADDED/a@2"},
		{"a clean end", []any{added("a", 5), io.EOF}, "1", []any{added("a", 5), added("b", 6)}, "ADDED/a@5 ADDED/b@6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := sequence(sends(tt.first...), sends(tt.second...))
				wantEvents(t, testkit.Watch(t, newRemote(p), watchFrom(1)), tt.want)
				if got, want := p.versions(), "1 "+tt.from; got != want {
					t.Errorf("watched from versions %s, want %s", got, want)
				}
			})
		})
	}
}

func TestWatchResumesTwiceWithinOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sequence(
			sends(added("a", 5), modified("b", 6), errConnectionLost),
			sends(modified("b", 6), modified("c", 6), errConnectionLost),
			sends(modified("b", 6), modified("c", 6), modified("d", 6), added("e", 7), errConnectionLost),
			sends(added("e", 7), added("f", 8)),
		)
		wantEvents(t, testkit.Watch(t, newRemote(p), watchFrom(1)),
			"ADDED/a@5 MODIFIED/b@6 MODIFIED/c@6 MODIFIED/d@6 ADDED/e@7 ADDED/f@8")
		if got, want := p.versions(), "1 5 5 6"; got != want {
			t.Errorf("watched from versions %s, want %s", got, want)
		}
	})
}

// Conformance case initial/cut-short.
func TestUnreadInitialEventsAreRequestedAgain(t *testing.T) {
	for _, cut := range []error{errConnectionLost, io.EOF} {
		synctest.Test(t, func(t *testing.T) {
			p := sequence(sends(added("a", 1), added("b", 2), cut), sends(added("b", 3), synced(4)))
			w := testkit.Watch(t, newRemote(p), listwatch.Query{Bookmarks: true})
			time.Sleep(time.Minute)
			wantEvents(t, w, "(ADDED/b@3) SYNCED@4")
		})
	}
}

func TestUnreadInitialEventsMayBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sequence(sends(added("a", 1), errConnectionLost), refuses(statusError(422)), refuses(statusError(422)),
			refuses(statusError(503)), sends(added("c", 8)))
		r := newRemote(p)
		serveLists(r, func(n int) listResponse {
			if n == 0 {
				return listResponse{status: 503}
			}
			return listResponse{status: 200, body: listBodyOf(7, "a", "b")}
		})
		w := testkit.Watch(t, r, listwatch.Query{Bookmarks: true})
		time.Sleep(time.Minute)
		wantEvents(t, w, "(ADDED/a@1) (ADDED/b@2) SYNCED@7 ADDED/c@8")
		if got := p.versions(); got != "   7 7" {
			t.Errorf("watched from versions %q", got)
		}
	})
}

func TestPartlyReadInitialEventsExpire(t *testing.T) {
	dialError := &listwatch.Error{Code: listwatch.Unavailable, Op: "dial", Err: io.EOF}
	for _, cut := range []error{errConnectionLost, io.EOF, dialError} {
		synctest.Test(t, func(t *testing.T) {
			p := always(sends(added("a", 1), time.Second, added("b", 2), time.Second, cut))
			w := testkit.Watch(t, newRemote(p), listwatch.Query{})
			wantEvents(t, w, "(ADDED/a@1)")
			wantEvents(t, w, "(ADDED/b@2)")
			wantError(t, w, listwatch.Expired)
			if _, err := w.Next(t.Context(), make([]listwatch.Event, 1)); errors.Is(err, io.EOF) {
				t.Errorf("the error %v matches io.EOF, so it looks like a clean end", err)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// A proxy may end a watch cleanly, or cut it, where the server reports 410. The reader must then
// list again.
func TestSilentEndsExpireTheWatch(t *testing.T) {
	for _, end := range []error{io.EOF, errConnectionLost} {
		synctest.Test(t, func(t *testing.T) {
			p := sequence(sends(added("a", 2), bookmark(2), errConnectionLost), sends(end))
			w := testkit.Watch(t, newRemote(p), watchFrom(1))
			wantEvents(t, w, "ADDED/a@2 BOOKMARK@2")
			wantError(t, w, listwatch.Expired)
			if got, want := p.versions(), "1 2 2 2"; got != want {
				t.Errorf("%v: watched from versions %s, want %s", end, got, want)
			}
		})
	}
}

// A quiet server without bookmarks sends nothing until its watches are over.
func TestLongSilentWatchesResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := sends(5*time.Minute, io.EOF)
		p := sequence(quiet, quiet, quiet, quiet, quiet, sends(added("a", 2)))
		r := newRemote(p)
		r.IdleTimeout = -1
		wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2")
	})
}
