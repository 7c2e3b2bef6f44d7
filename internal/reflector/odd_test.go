package reflector

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

func TestAStateThatBreaksOffAgainAndAgainIsWaitedForLongerAndLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &played{}
		for range 60 {
			source.watches = append(source.watches, answer{events: events(t, "(a@3)"), end: clean})
		}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, time.Minute)
		if n := len(source.calls); n > 15 {
			t.Errorf("a server that ends the state in the middle was asked for it %d times in a minute, want waits that grow", n)
		}
	})
}

func TestAStateThatCouldNotBeTakenIsStillNotToBeOlderThanWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &played{watches: []answer{streams(t, "=5", ends(listwatch.Expired)), streams(t, "(a@6)", nil), streams(t, "(a@6) =7", nil)}}
		follows(t, &Reflector{Source: source, Sink: &taken{refuse: "(a@6)"}}, 10*time.Minute)
		if diff := cmp.Diff([]string{"state", "state>=5", "state>=5"}, asks(source.calls)); diff != "" {
			t.Errorf("what it asks for (-want +got):\n%s", diff)
		}
	})
}

func TestASourceThatRefusesToGoOnIsAskedForTheState(t *testing.T) {
	for _, code := range []listwatch.Code{listwatch.Invalid, listwatch.Unsupported} {
		synctest.Test(t, func(t *testing.T) {
			source := &played{watches: []answer{streams(t, "=5", clean)}}
			for range 20 {
				source.watches = append(source.watches, refuses(code))
			}
			source.lists = []page{{page: listwatch.Page{Version: 9}}}
			sink := &taken{}
			follows(t, &Reflector{Source: source, Sink: sink}, 30*time.Minute)
			if !slices.Contains(sink.lines, "=9") {
				t.Errorf("%v: it got %q and asked %q, want the state again", code, sink.lines, asks(source.calls))
			}
		})
	}
}

func TestASourceThatDoesNotStreamIsAskedAgainAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expires := answer{after: 20 * time.Minute, end: ends(listwatch.Expired)}
		source := &played{watches: []answer{refuses(listwatch.Unsupported), expires, expires, expires, streams(t, "=9", nil)}}
		for range 3 {
			source.lists = append(source.lists, page{page: listwatch.Page{Version: 5}})
		}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, 2*time.Hour)
		want := []string{"state", "list", "from 5", "list>=5", "from 5", "list>=5", "from 5", "state>=5"}
		if diff := cmp.Diff(want, asks(source.calls)); diff != "" {
			t.Errorf("what it asks for (-want +got):\n%s", diff)
		}
	})
}

func TestAListWhosePagesNeverEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := events(t, "(a@3)")[0].Object
		source := &played{watches: []answer{refuses(listwatch.Unsupported)}}
		for range 1000 {
			source.lists = append(source.lists, page{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}})
		}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, time.Second)
		if n := len(source.calls); n > 20 {
			t.Errorf("it asked for %d pages in a second, each time for the same one", n)
		}
	})
}

func TestPagesOfDifferentVersionsAreFollowedFromTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := events(t, "(a@3)")[0].Object, events(t, "(b@4)")[0].Object
		source := &played{watches: []answer{refuses(listwatch.Unsupported)}, lists: []page{
			{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}},
			{page: listwatch.Page{Items: []*listwatch.Object{b}, Version: 8}},
		}}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, time.Second)
		if diff := cmp.Diff([]string{"state", "list", "more", "from 5"}, asks(source.calls)); diff != "" {
			t.Errorf("what it asks for (-want +got):\n%s", diff)
		}
	})
}

func TestASourceThatNeverSaysTheEndOfTheStateIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := events(t, "(a@3)")[0].Object
		source := &played{lists: []page{{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5}}}}
		for range maxTruncated {
			source.watches = append(source.watches, streams(t, "(a@3)", clean))
		}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, 20*time.Minute)
		if diff := cmp.Diff([]string{"state", "state", "state", "list", "from 5"}, asks(source.calls)); diff != "" {
			t.Errorf("what it asks for (-want +got):\n%s", diff)
		}
	})
}
