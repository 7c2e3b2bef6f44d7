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

// asks spells calls: "state" and "state>=5" stream a state, "from 5" goes on, "list" and "list>=5" and "more" are pages.
func asks(calls []call) []string {
	var all []string
	for _, c := range calls {
		what := "state"
		switch {
		case c.list && c.query.Continue != "":
			what = "more"
		case c.list:
			what = "list"
		case c.query.InitialEvents == listwatch.No:
			all = append(all, "from "+c.query.Version.String())
			continue
		}
		if c.query.Start == listwatch.At {
			what += ">=" + c.query.Version.String()
		}
		all = append(all, what)
	}
	return all
}

func TestFollowing(t *testing.T) {
	expired, notYet, corrupt := ends(listwatch.Expired), ends(listwatch.NotYet), ends(listwatch.Corrupt)
	a, b := events(t, "(a@3)")[0].Object, events(t, "(b@4)")[0].Object
	for _, tt := range []struct {
		claim   string
		watches []answer
		lists   []page
		refuse  string
		asks    string
		takes   string
	}{
		{
			"the state is streamed, then its changes",
			[]answer{streams(t, "(a@3) (b@4) =5 +c@6 *a@7 -b@8 !9", nil)},
			nil, "",
			"state", "begin (a@3) (b@4) =5 +c@6 *a@7 -b@8 !9",
		},
		{
			"a clean end is gone on from the newest complete version",
			[]answer{streams(t, "=5 +a@6 +b@7", clean), streams(t, "+b@7 +c@7 *a@8", nil)},
			nil, "",
			"state; from 6", "begin =5 +a@6 +b@7 +c@7 *a@8",
		},
		{
			"a bookmark completes a version",
			[]answer{streams(t, "=5 +a@6 !6", clean), streams(t, "!9", clean)},
			nil, "",
			"state; from 6; from 9", "begin =5 +a@6 !6 !9",
		},
		{
			"a state that breaks off is begun again",
			[]answer{streams(t, "(a@3)", clean), streams(t, "(a@3) (b@4) =5", nil)},
			nil, "",
			"state; state", "begin (a@3) begin (a@3) (b@4) =5",
		},
		{
			"a change within the state is a broken promise",
			[]answer{streams(t, "(a@3) *a@4", nil), streams(t, "=5", nil)},
			nil, "",
			"state; state", "begin (a@3) begin =5",
		},
		{
			"expired history: the state again, not older than what was seen",
			[]answer{streams(t, "=5 +a@6", expired), streams(t, "(a@6) =9", nil)},
			nil, "",
			"state; state>=6", "begin =5 +a@6 begin (a@6) =9",
		},
		{
			"expired again: the newest",
			[]answer{streams(t, "=5", expired), {refused: expired}, streams(t, "=1", nil)},
			nil, "",
			"state; state>=5; state", "begin =5 begin =1",
		},
		{
			"a state that the source has not come to: the newest",
			[]answer{streams(t, "=5", expired), {refused: notYet}, streams(t, "=1", nil)},
			nil, "",
			"state; state>=5; state", "begin =5 begin =1",
		},
		{
			"an event that can't be understood: the state again",
			[]answer{streams(t, "=5", corrupt), streams(t, "=6", nil)},
			nil, "",
			"state; state>=5", "begin =5 begin =6",
		},
		{
			"an event that the sink refuses: the state again",
			[]answer{streams(t, "=5 +a@6 +b@7", nil), streams(t, "(a@6) (b@7) =7", nil)},
			nil, "+b@7",
			"state; state>=7", "begin =5 +a@6 begin (a@6) (b@7) =7",
		},
		{
			"versions that go back: the state again",
			[]answer{streams(t, "=5 +a@8 +b@7", nil), streams(t, "=9", nil)},
			nil, "",
			"state; state>=8", "begin =5 +a@8 begin =9",
		},
		{
			"a source that can't stream its state is listed, and not asked to stream again",
			[]answer{refuses(listwatch.Unsupported), streams(t, "+c@6", expired), streams(t, "!8", nil)},
			[]page{
				{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}},
				{page: listwatch.Page{Items: []*listwatch.Object{b}, Version: 5}},
				{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 7}},
			},
			"", "state; list; more; from 5; list>=6; from 7", "begin (a@3) (b@4) =5 +c@6 begin (a@3) =7 !8",
		},
		{
			"a list that expires between pages is asked for at once",
			[]answer{refuses(listwatch.Invalid)},
			[]page{{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}}, {err: expired}, {page: listwatch.Page{Items: []*listwatch.Object{a, b}, Version: 6}}},
			"", "state; list; more; list; from 6", "begin (a@3) begin (a@3) (b@4) =6",
		},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, sink := &played{watches: slices.Clone(tt.watches), lists: tt.lists}, &taken{refuse: tt.refuse}
				follows(t, &Reflector{Source: source, Sink: sink}, 10*time.Minute)
				got := asks(source.calls)
				want := strings.Split(tt.asks, "; ")
				if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
					t.Errorf("what it asks for (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.takes, strings.Join(sink.lines, " ")); diff != "" {
					t.Errorf("what the sink gets (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A releasing source has watchers that want their events back.
type releasing struct {
	played
	released []string
}

func (s *releasing) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.played.Watch(ctx, q)
	return &releaser{w, s}, err
}

type releaser struct {
	listwatch.Watcher
	source *releasing
}

func (r *releaser) Release(events []listwatch.Event) {
	for _, e := range events {
		r.source.released = append(r.source.released, spell(e))
	}
}

func TestWhatTheSinkHasTakenIsReleasedOnce(t *testing.T) {
	for _, tt := range []struct {
		claim   string
		release bool
		refuse  string
		want    string
	}{
		{"the sink keeps nothing", true, "", "(a@3) =5 +b@6 *a@7 !9"},
		{"the sink may keep what it takes", false, "", ""},
		{"what the sink refuses may be looked at by whoever is told", true, "*a@7", "=9"},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &releasing{played: played{watches: []answer{streams(t, "(a@3) =5 +b@6 *a@7", clean), streams(t, "*a@7 !9", nil)}}}
				if tt.refuse != "" {
					source.watches[1] = streams(t, "=9", nil)
				}
				follows(t, &Reflector{Source: source, Sink: &taken{refuse: tt.refuse}, Release: tt.release}, 10*time.Minute)
				if got := strings.Join(source.released, " "); got != tt.want {
					t.Errorf("released %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// follows runs f for so long.
func follows(t *testing.T, f *Reflector, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := f.Run(ctx); err != context.DeadlineExceeded {
		t.Errorf("Run returned %v, want that of its context", err)
	}
}

func TestWaitsDoubleUpToTheMaximumAndAreForgottenWhenHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &played{}
		for range 20 {
			source.watches = append(source.watches, refuses(listwatch.Unavailable))
		}
		source.watches = append(source.watches, answer{events: events(t, "=5"), after: 3 * time.Minute, end: ends(listwatch.Unavailable)})
		var waits []time.Duration
		lost := func(_ error, wait time.Duration, _ bool) { waits = append(waits, wait) }
		follows(t, &Reflector{Source: source, Sink: &taken{}, Lost: lost}, 30*time.Minute)
		if len(waits) != 21 {
			t.Fatalf("there were %d waits, want 21", len(waits))
		}
		bound := 800 * time.Millisecond
		for i, w := range waits[:20] {
			if w > bound {
				t.Errorf("wait %d was %v, want at most %v", i, w, bound)
			}
			bound = min(2*bound, 30*time.Second)
		}
		if last := waits[20]; last > 800*time.Millisecond {
			t.Errorf("after three healthy minutes the wait was %v, want at most 800 ms", last)
		}
	})
}

func TestRetryAfterIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &listwatch.Error{Code: listwatch.TooSlow, Details: &listwatch.Details{RetryAfter: 7 * time.Second}}
		source := &played{watches: []answer{{refused: busy}}}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, time.Minute)
		if waited := source.calls[1].at.Sub(source.calls[0].at); waited < 7*time.Second {
			t.Errorf("it asked again after %v, want 7 s or more", waited)
		}
	})
}

func TestAStreamThatEndsAtOnceIsNotAskedForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &played{watches: []answer{{events: events(t, "=5"), end: clean}}}
		for range 20 {
			source.watches = append(source.watches, answer{end: clean})
		}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, time.Minute)
		if n := len(source.calls); n > 15 {
			t.Errorf("a server that ends watches at once was asked %d times in a minute, want waits that grow", n)
		}
	})
}

func TestASourceThatIsBehindIsBorneWithForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &played{watches: []answer{streams(t, "=5", clean)}}
		for range 40 {
			source.watches = append(source.watches, refuses(listwatch.NotYet))
		}
		follows(t, &Reflector{Source: source, Sink: &taken{}}, 20*time.Minute)
		asked := asks(source.calls)
		again := slices.Index(asked[1:], "state") + 1
		if again < 2 {
			t.Fatalf("it asked %q, want the state again at some time", asked)
		}
		if took := source.calls[again].at.Sub(source.calls[1].at); took < LagTolerance || took > LagTolerance+2*time.Minute {
			t.Errorf("it gave its version up after %v, want about %v", took, LagTolerance)
		}
	})
}
