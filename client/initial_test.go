package client

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/internal/testkit"
)

func TestInitialEventsAreMarkedAndEndWithSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(sends(added("a", 9), added("b", 3), synced(9), added("c", 10)))
		w := testkit.Watch(t, newRemote(p), listwatch.Query{Bookmarks: true})
		wantEvents(t, w, "(ADDED/a@9) (ADDED/b@3) SYNCED@9 ADDED/c@10")
	})
}

func TestFirstBookmarkEndsInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Watch(t, newRemote(always(sends(added("a", 9), bookmark(12), added("c", 13), bookmark(14)))),
			listwatch.Query{Bookmarks: true})
		var batch [4]listwatch.Event
		n := 0
		for n < len(batch) {
			k, err := w.Next(t.Context(), batch[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		if e := batch[1]; e.Type != listwatch.Synced || e.Version != 12 {
			t.Errorf("got %s, want SYNCED@12", format(e))
		}
		if got := string(batch[1].Object.Data); got != string(synced(12).Object) {
			t.Errorf("got object %s, want the annotation of the end of the initial events", got)
		}
		if e := batch[3]; e.Type != listwatch.Bookmark {
			t.Errorf("got %s, want BOOKMARK@14", format(e))
		}
	})
}

// Conformance case bookmark/not-to-handlers.
func TestBookmarksAreDeliveredOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sequence(sends(added("a", 9), synced(9), bookmark(20), errConnectionLost), sends(modified("a", 21)))
		w := testkit.Watch(t, newRemote(p), listwatch.Query{})
		wantEvents(t, w, "(ADDED/a@9) MODIFIED/a@21")
		if got, want := p.versions(), " 20"; got != want {
			t.Errorf("watched from versions %q, want %q: a bookmark advances the version", got, want)
		}
	})
}

func TestWatchFromNowListsItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(sends(added("a", 8)))
		r := newRemote(p)
		lists := serveLists(r, respondWith(listBodyOf(7, "x")))
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAny, InitialEvents: listwatch.InitialEventsNo})
		wantEvents(t, w, "ADDED/a@8")
		if got := lists.queries(); got != "limit=1" || p.versions() != "7" {
			t.Errorf("the list has query %q and the watch version %s, want limit=1 and 7", got, p.versions())
		}
	})
}

// Conformance case initial/fallback.
func TestRefusedInitialEventsAreListed(t *testing.T) {
	for _, status := range []int{400, 422} {
		synctest.Test(t, func(t *testing.T) {
			p := sequence(refuses(statusError(status)), sends(modified("a", 8)))
			r := newRemote(p)
			lists := serveLists(r, respondWith(listBodyOf(7, "a", "b")))
			w := testkit.Watch(t, r, listwatch.Query{Bookmarks: true})
			wantEvents(t, w, "(ADDED/a@1) (ADDED/b@2) SYNCED@7 MODIFIED/a@8")
			w.Close()

			w = testkit.Watch(t, r, listwatch.Query{})
			wantEvents(t, w, "(ADDED/a@1) (ADDED/b@2) MODIFIED/a@8")
			w.Close()
			if got := p.versions(); got != " 7 7" {
				t.Errorf("watched from versions %q, want initial events requested once", got)
			}
			time.Sleep(reflector.WatchListRetryInterval) // fake time
			testkit.Watch(t, r, listwatch.Query{}).Close()
			if got := p.versions(); got != " 7 7 " {
				t.Errorf("watched from versions %q, want initial events requested again after an hour", got)
			}
			if got := lists.queries(); got != " " {
				t.Errorf("the lists have queries %q, want two without parameters", got)
			}
		})
	}
}

func TestWatchReturnsTheErrorOfTheList(t *testing.T) {
	r := newRemote(always(refuses(statusError(400))))
	serveLists(r, func(int) listResponse { return listResponse{status: 400, body: "bad selector"} })
	_, err := r.Watch(t.Context(), listwatch.Query{})
	if !errors.Is(err, listwatch.Invalid) || r.state.watchList.Unsupported() {
		t.Errorf("got error %v, Unsupported %v; want %v and false", err, r.state.watchList.Unsupported(),
			listwatch.Invalid)
	}
}

func TestSilentInitialEventsAreListedNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sequence(sends(added("a", 1)), sends(modified("a", 8)))
		r := newRemote(p)
		serveLists(r, respondWith(listBodyOf(7, "a")))
		w := testkit.Watch(t, r, listwatch.Query{})
		wantEvents(t, w, "(ADDED/a@1)")
		wantError(t, w, listwatch.Expired)
		wantEvents(t, testkit.Watch(t, r, listwatch.Query{}), "(ADDED/a@1) MODIFIED/a@8")
	})
}
