package reflector

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

func TestTruncatedStatesIncreaseBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{}
		for range 60 {
			source.watches = append(source.watches, scriptedWatch{events: parseEvents(t, "(a@3)"), end: clean})
		}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, time.Minute)
		if n := len(source.requests); n > 20 {
			t.Errorf("%d requests in a minute, want at most 20", n)
		}
	})
}

func TestRejectedStateIsRequestedNotOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{watches: []scriptedWatch{
			sends(t, "=5", failsWith(listwatch.Expired)),
			sends(t, "(a@6)", nil), sends(t, "(a@6) =7", nil),
		}}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{reject: "(a@6)"}}, 10*time.Minute)
		if diff := cmp.Diff([]string{"state", "state>=5", "state>=5"}, formatRequests(source.requests)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// A source that starts at version 0 cannot be followed: zero means that no version is given.
func TestVersionZeroOfASourceIsAnError(t *testing.T) {
	for name, source := range map[string]*scriptedSource{
		"watch": {watches: []scriptedWatch{sends(t, "=0", nil)}},
		"list":  {watches: []scriptedWatch{refuses(listwatch.Unsupported)}, lists: []scriptedPage{{}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			sink := new(recordingSink)
			var lost error
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			r := &Reflector{Source: source, Sink: sink, Lost: func(err error, _ time.Duration, _ bool) {
				lost = err
				cancel()
			}}
			_ = r.Run(ctx)
			if lost == nil || !strings.Contains(lost.Error(), "*reflector.scriptedSource has version 0") {
				t.Errorf("%s: got %v, want an error that names the source", name, lost)
			}
			if got := strings.Join(sink.received, " "); got != "begin" {
				t.Errorf("%s: the sink received %s, want no event", name, got)
			}
		})
	}
}

func TestRefusedResumeRequestsTheState(t *testing.T) {
	for _, code := range []listwatch.Code{listwatch.Invalid, listwatch.Unsupported} {
		synctest.Test(t, func(t *testing.T) {
			source := &scriptedSource{watches: []scriptedWatch{sends(t, "=5", clean)}}
			for range 20 {
				source.watches = append(source.watches, refuses(code))
			}
			source.lists = []scriptedPage{{page: listwatch.Page{Version: 9}}}
			sink := &recordingSink{}
			runFor(t, &Reflector{Source: source, Sink: sink}, 30*time.Minute)
			if !slices.Contains(sink.received, "=9") {
				t.Errorf("%v: the sink received %q after the requests %q, want the state of version 9", code,
					sink.received, formatRequests(source.requests))
			}
		})
	}
}

func TestWatchListIsRetriedAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expires := scriptedWatch{lives: 20 * time.Minute, end: failsWith(listwatch.Expired)}
		source := &scriptedSource{watches: []scriptedWatch{
			refuses(listwatch.Unsupported), expires, expires, expires,
			sends(t, "=9", nil),
		}}
		for range 3 {
			source.lists = append(source.lists, scriptedPage{page: listwatch.Page{Version: 5}})
		}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, 2*time.Hour)
		want := []string{"state", "list", "from 5", "list>=5", "from 5", "list>=5", "from 5", "state>=5"}
		if diff := cmp.Diff(want, formatRequests(source.requests)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestRepeatedPageEndsTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := parseEvents(t, "(a@3)")[0].Object
		source := &scriptedSource{watches: []scriptedWatch{refuses(listwatch.Unsupported)}}
		for range 1000 {
			source.lists = append(source.lists,
				scriptedPage{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}})
		}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, time.Second)
		if n := len(source.requests); n > 20 {
			t.Errorf("%d requests in a second, want at most 20", n)
		}
	})
}

func TestWatchStartsAtTheOldestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := parseEvents(t, "(a@3)")[0].Object, parseEvents(t, "(b@4)")[0].Object
		source := &scriptedSource{watches: []scriptedWatch{refuses(listwatch.Unsupported)}, lists: []scriptedPage{
			{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}},
			{page: listwatch.Page{Items: []*listwatch.Object{b}, Version: 8}},
		}}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, time.Second)
		if diff := cmp.Diff([]string{"state", "list", "more", "from 5"}, formatRequests(source.requests)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestRepeatedlyTruncatedStateIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := parseEvents(t, "(a@3)")[0].Object
		source := &scriptedSource{
			lists: []scriptedPage{{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5}}},
		}
		for range maxTruncated {
			source.watches = append(source.watches, sends(t, "(a@3)", clean))
		}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, 20*time.Minute)
		if diff := cmp.Diff([]string{"state", "state", "state", "list", "from 5"},
			formatRequests(source.requests)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// A proxy may drop the bookmark that marks the end of the initial events.
func TestStateWithoutAnEndIsListed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		watches []scriptedWatch
		want    string
	}{
		{"changes follow", []scriptedWatch{
			sends(t, "(a@3) *a@4", nil), sends(t, "(a@4) *a@5", nil),
			sends(t, "(a@5) -a@6", nil),
		}, "state; state; state; list; from 9"},
		{"nothing follows", []scriptedWatch{sends(t, "(a@3)", nil)}, "state; list; from 9"},
		{"no event at all", []scriptedWatch{sends(t, "", nil)}, "state; list; from 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &scriptedSource{
					watches: tt.watches,
					lists:   []scriptedPage{{page: listwatch.Page{Version: 9}}},
				}
				runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, 10*time.Minute)
				if got := strings.Join(formatRequests(source.requests), "; "); got != tt.want {
					t.Errorf("requests %s, want %s", got, tt.want)
				}
			})
		})
	}
}

func TestStateThatIsRefusedInTheStreamIsListed(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  *listwatch.Error
		want string
	}{
		{"an error without a code", &listwatch.Error{Status: 500, Remote: true}, "state; list; from 9"},
		{
			"an error that passes", &listwatch.Error{Code: listwatch.Unavailable, Status: 503, Remote: true},
			"state; state",
		},
		{"an error of the connection", &listwatch.Error{}, "state; state"},
	} {
		synctest.Test(t, func(t *testing.T) {
			source := &scriptedSource{
				watches: []scriptedWatch{sends(t, "", tt.err)},
				lists:   []scriptedPage{{page: listwatch.Page{Version: 9}}},
			}
			runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, 10*time.Minute)
			if got := strings.Join(formatRequests(source.requests), "; "); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: requests %s, want %s", tt.name, got, tt.want)
			}
		})
	}
}

// Permissions may allow watches but no lists.
func TestRefusedListStreamsTheStateAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{watches: []scriptedWatch{sends(t, "(a@3)", nil), sends(t, "(a@3) =5", nil)}}
		source.lists = []scriptedPage{{err: failsWith(listwatch.Forbidden)}}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, 10*time.Minute)
		if got := strings.Join(formatRequests(source.requests), "; "); got != "state; list; state" {
			t.Errorf("requests %s, want state; list; state", got)
		}
	})
}

// An object that is created after the initial events looks like one of them.
func TestStateThatGrowsForeverIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &growingSource{scriptedSource{lists: []scriptedPage{{page: listwatch.Page{Version: 9}}}}}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, time.Hour)
		if got := strings.Join(formatRequests(source.requests), "; "); got != "state; list; from 9" {
			t.Errorf("requests %s, want state; list; from 9", got)
		}
		if took := source.requests[1].at.Sub(source.requests[0].at); took < maxInitialTime ||
			took > maxInitialTime+maxInitialGap {
			t.Errorf("listed after %v, want %v", took, maxInitialTime)
		}
	})
}

// A growingSource sends an initial event every two seconds.
type growingSource struct{ scriptedSource }

func (g *growingSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := g.scriptedSource.Watch(ctx, q)
	if q.SendsInitialEvents() {
		w = &growingWatcher{}
	}
	return w, err
}

type growingWatcher struct{ scriptedWatcher }

func (g *growingWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if !Sleep(ctx, 2*time.Second) {
		return 0, ctx.Err()
	}
	dst[0] = listwatch.Event{
		Type: listwatch.Added, Version: 3,
		Object: &listwatch.Object{Key: listwatch.Key{Name: "a"}, Version: 3},
	}
	return 1, nil
}
