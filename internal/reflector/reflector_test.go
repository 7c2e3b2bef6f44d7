package reflector

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

// formatRequests formats a watch with initial events as "state" or "state>=5", a watch
// without them as "from 5", the first page of a list as "list" or "list>=5", and every
// other page as "more".
func formatRequests(requests []request) []string {
	var all []string
	for _, r := range requests {
		kind := "state"
		switch {
		case r.isList && r.query.Continue != "":
			kind = "more"
		case r.isList:
			kind = "list"
		case r.query.InitialEvents == listwatch.InitialEventsNo:
			all = append(all, "from "+r.query.Version.String())
			continue
		}
		if r.query.Start == listwatch.StartAt {
			kind += ">=" + r.query.Version.String()
		}
		all = append(all, kind)
	}
	return all
}

func TestReflectorRequestsAndDelivers(t *testing.T) {
	expired, notYet, corrupt := failsWith(listwatch.Expired), failsWith(listwatch.NotYet), failsWith(listwatch.Corrupt)
	a, b := parseEvents(t, "(a@3)")[0].Object, parseEvents(t, "(b@4)")[0].Object
	for _, tt := range []struct {
		name     string
		watches  []scriptedWatch
		lists    []scriptedPage
		reject   string
		requests string
		events   string
	}{
		{
			"the state and its changes are streamed",
			[]scriptedWatch{sends(t, "(a@3) (b@4) =5 +c@6 *a@7 -b@8 !9", nil)},
			nil, "",
			"state", "begin (a@3) (b@4) =5 +c@6 *a@7 -b@8 !9",
		},
		{
			"after a clean end the watch resumes at the last complete version",
			[]scriptedWatch{sends(t, "=5 +a@6 +b@7", clean), sends(t, "+b@7 +c@7 *a@8", nil)},
			nil, "",
			"state; from 6", "begin =5 +a@6 +b@7 +c@7 *a@8",
		},
		{
			"a bookmark completes a version",
			[]scriptedWatch{sends(t, "=5 +a@6 !6", clean), sends(t, "!9", clean)},
			nil, "",
			"state; from 6; from 9", "begin =5 +a@6 !6 !9",
		},
		{
			"an incomplete state is requested again",
			[]scriptedWatch{sends(t, "(a@3)", clean), sends(t, "(a@3) (b@4) =5", nil)},
			nil, "",
			"state; state", "begin (a@3) begin (a@3) (b@4) =5",
		},
		{
			"a change within the state is rejected",
			[]scriptedWatch{sends(t, "(a@3) *a@4", nil), sends(t, "=5", nil)},
			nil, "",
			"state; state", "begin (a@3) begin =5",
		},
		{
			"after Expired a state that is not older is requested",
			[]scriptedWatch{sends(t, "=5 +a@6", expired), sends(t, "(a@6) =9", nil)},
			nil, "",
			"state; state>=6", "begin =5 +a@6 begin (a@6) =9",
		},
		{
			"after Expired twice the newest state is requested",
			[]scriptedWatch{sends(t, "=5", expired), {refuse: expired}, sends(t, "=1", nil)},
			nil, "",
			"state; state>=5; state", "begin =5 begin =1",
		},
		{
			"after NotYet the newest state is requested",
			[]scriptedWatch{sends(t, "=5", expired), {refuse: notYet}, sends(t, "=1", nil)},
			nil, "",
			"state; state>=5; state", "begin =5 begin =1",
		},
		{
			"after a malformed event the state is requested",
			[]scriptedWatch{sends(t, "=5", corrupt), sends(t, "=6", nil)},
			nil, "",
			"state; state>=5", "begin =5 begin =6",
		},
		{
			"after a rejected event the state is requested",
			[]scriptedWatch{sends(t, "=5 +a@6 +b@7", nil), sends(t, "(a@6) (b@7) =7", nil)},
			nil, "+b@7",
			"state; state>=7", "begin =5 +a@6 begin (a@6) (b@7) =7",
		},
		{
			"after an older version the state is requested",
			[]scriptedWatch{sends(t, "=5 +a@8 +b@7", nil), sends(t, "=9", nil)},
			nil, "",
			"state; state>=8", "begin =5 +a@8 begin =9",
		},
		{
			"a source that cannot stream its state is listed from then on",
			[]scriptedWatch{refuses(listwatch.Unsupported), sends(t, "+c@6", expired), sends(t, "!8", nil)},
			[]scriptedPage{
				{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}},
				{page: listwatch.Page{Items: []*listwatch.Object{b}, Version: 5}},
				{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 7}},
			},
			"", "state; list; more; from 5; list>=6; from 7", "begin (a@3) (b@4) =5 +c@6 begin (a@3) =7 !8",
		},
		{
			"after a rejected list a state that is not older is requested",
			[]scriptedWatch{refuses(listwatch.Unsupported), sends(t, "=6", nil)},
			[]scriptedPage{{page: listwatch.Page{Version: 5}}},
			"=5", "state; list; state>=5", "begin begin =6",
		},
		{
			"a list that expires between pages is requested in one page",
			[]scriptedWatch{refuses(listwatch.Invalid)},
			[]scriptedPage{
				{page: listwatch.Page{Items: []*listwatch.Object{a}, Version: 5, Continue: "x"}},
				{err: expired},
				{page: listwatch.Page{Items: []*listwatch.Object{a, b}, Version: 6}},
			},
			"", "state; list; more; list; from 6", "begin (a@3) begin (a@3) (b@4) =6",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, sink := &scriptedSource{watches: slices.Clone(tt.watches), lists: tt.lists},
					&recordingSink{reject: tt.reject}
				runFor(t, &Reflector{Source: source, Sink: sink}, 10*time.Minute)
				got := formatRequests(source.requests)
				want := strings.Split(tt.requests, "; ")
				if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.events, strings.Join(sink.received, " ")); diff != "" {
					t.Errorf("events of the sink (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A releasingSource is a scriptedSource whose watchers implement Releaser.
type releasingSource struct {
	scriptedSource
	released []string
}

func (s *releasingSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.scriptedSource.Watch(ctx, q)
	return &releasingWatcher{w, s}, err
}

type releasingWatcher struct {
	listwatch.Watcher
	source *releasingSource
}

func (r *releasingWatcher) Release(events []listwatch.Event) {
	for _, e := range events {
		r.source.released = append(r.source.released, format(e))
	}
}

func TestAcceptedEventsAreReleasedOnce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		release bool
		reject  string
		want    string
	}{
		{"released", true, "", "(a@3) =5 +b@6 *a@7 !9"},
		{"not released", false, "", ""},
		{"rejected events are not released", true, "*a@7", "=9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &releasingSource{
					scriptedSource: scriptedSource{watches: []scriptedWatch{
						sends(t, "(a@3) =5 +b@6 *a@7", clean),
						sends(t, "*a@7 !9", nil),
					}},
				}
				if tt.reject != "" {
					source.watches[1] = sends(t, "=9", nil)
				}
				runFor(t, &Reflector{Source: source, Sink: &recordingSink{reject: tt.reject}, Release: tt.release},
					10*time.Minute)
				if got := strings.Join(source.released, " "); got != tt.want {
					t.Errorf("released %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// runFor runs r for d.
func runFor(t *testing.T, r *Reflector, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Run(ctx); err != context.DeadlineExceeded {
		t.Errorf("Run returned %v, want the error of its context", err)
	}
}

func TestBackoffDoublesAndResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{}
		for range 20 {
			source.watches = append(source.watches, refuses(listwatch.Unavailable))
		}
		source.watches = append(source.watches,
			scriptedWatch{events: parseEvents(t, "=5"), lives: 3 * time.Minute, end: failsWith(listwatch.Unavailable)})
		var delays []time.Duration
		lost := func(_ error, wait time.Duration, _ bool) { delays = append(delays, wait) }
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}, Lost: lost}, 30*time.Minute)
		if len(delays) != 21 {
			t.Fatalf("%d delays, want 21", len(delays))
		}
		bound := 800 * time.Millisecond
		for i, w := range delays[:20] {
			if w > bound {
				t.Errorf("delay %d is %v, want at most %v", i, w, bound)
			}
			bound = min(2*bound, 30*time.Second)
		}
		if last := delays[20]; last > 800*time.Millisecond {
			t.Errorf("after a watch of three minutes the delay is %v, want at most 800 ms", last)
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &listwatch.Error{Code: listwatch.TooSlow, Details: &listwatch.Details{RetryAfter: 7 * time.Second}}
		source := &scriptedSource{watches: []scriptedWatch{{refuse: busy}}}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, time.Minute)
		if waited := source.requests[1].at.Sub(source.requests[0].at); waited < 7*time.Second {
			t.Errorf("the next request came after %v, want at least 7 s", waited)
		}
	})
}

func TestBriefWatchesIncreaseBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{watches: []scriptedWatch{{events: parseEvents(t, "=5"), end: clean}}}
		for range 20 {
			source.watches = append(source.watches, scriptedWatch{end: clean})
		}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, time.Minute)
		if n := len(source.requests); n > 20 {
			t.Errorf("%d requests in a minute, want at most 20", n)
		}
	})
}

// A proxy may end a watch cleanly where the server reports that the history has expired. It may
// also cut the connection there, or keep it open in silence.
func TestSilentEndsRequestTheState(t *testing.T) {
	silence := &listwatch.Error{Code: listwatch.Unavailable, Err: context.DeadlineExceeded}
	for name, end := range map[string]scriptedWatch{
		"clean":  {end: clean},
		"cut":    {end: failsWith(listwatch.Unavailable)},
		"silent": {lives: 150 * time.Second, end: silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, sink := &scriptedSource{watches: []scriptedWatch{
					sends(t, "(a@3) =5", clean), end, end, end,
					sends(t, "=9", nil),
				}}, &recordingSink{}
				runFor(t, &Reflector{Source: source, Sink: sink}, time.Hour)
				if diff := cmp.Diff([]string{"state", "from 5", "from 5", "from 5", "state>=5"},
					formatRequests(source.requests)); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if got, want := strings.Join(sink.received, " "), "begin (a@3) =5 begin =9"; got != want {
					t.Errorf("the sink received %s, want %s", got, want)
				}
			})
		})
	}
}

func TestSilentEndsKeepAConfirmedVersion(t *testing.T) {
	brief := scriptedWatch{end: clean}
	for name, between := range map[string]scriptedWatch{
		"event":          {events: parseEvents(t, "!5"), end: clean},
		"long life":      sends(t, "", clean),
		"reported error": {end: &listwatch.Error{Code: listwatch.Unavailable, Remote: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &scriptedSource{watches: []scriptedWatch{
					sends(t, "=5", clean), brief, brief, between, brief,
					brief, between,
				}}
				runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, 30*time.Minute)
				if got := formatRequests(source.requests); len(got) != 8 || slices.Contains(got, "state>=5") {
					t.Errorf("requests %q, want the watch to resume 7 times", got)
				}
			})
		})
	}
}

// A reader of events receives the doubt as an error, like every expiry.
func TestSilentEndsExpireTheWatchOfAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{watches: []scriptedWatch{
			sends(t, "=5", clean),
			{end: clean},
			{end: clean},
			{end: clean},
		}}
		resume := func(end WatchEnd, _ *ResumePoint) Action {
			if end.IsClean() {
				return Retry
			}
			return Stop
		}
		err := (&Reflector{
			Source: source, Sink: &recordingSink{}, Policy: Policy{Decide: resume},
			Restart: func(cause error, _ *ResumePoint) error { return cause },
		}).Run(t.Context())
		if listwatch.CodeOf(err) != listwatch.Expired || errors.Is(err, io.EOF) {
			t.Errorf("got error %v, want Expired", err)
		}
	})
}

func TestLaggingSourceIsRetriedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{watches: []scriptedWatch{sends(t, "=5", clean)}}
		for range 40 {
			source.watches = append(source.watches, refuses(listwatch.NotYet))
		}
		runFor(t, &Reflector{Source: source, Sink: &recordingSink{}}, 20*time.Minute)
		requests := formatRequests(source.requests)
		again := slices.Index(requests[1:], "state") + 1
		if again < 2 {
			t.Fatalf("the requests are %q, want the state to be requested again", requests)
		}
		if took := source.requests[again].at.Sub(source.requests[1].at); took < LagTolerance ||
			took > LagTolerance+2*time.Minute {
			t.Errorf("the state was requested after %v, want about %v", took, LagTolerance)
		}
	})
}
