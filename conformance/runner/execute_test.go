package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestReferenceServerPassesOutsideGoTest(t *testing.T) {
	target := reference.New("listwatch", reference.Interceptors{})
	count := map[runner.Verdict]int{}
	for _, c := range cases.All() {
		if c.Group() != "handshake" && c.Group() != "error" {
			continue // the other groups take longer, and TestCases of package cases runs them
		}
		runner.Execute(t.Context(), c, target, func(string) bool { return true }, func(o runner.Outcome) {
			count[o.Verdict]++
			if o.Verdict != runner.Pass && o.Verdict != runner.Skip {
				t.Errorf("%s: %s: %q", o.Name(), o.Verdict, o.Messages)
			}
			if o.Verdict == runner.Skip && o.Reason == "" {
				t.Errorf("%s was skipped without a reason", o.Name())
			}
		})
	}
	if count[runner.Pass] < 50 || count[runner.Skip] == 0 {
		t.Errorf("got the verdicts %v, want at least 50 passes and some skipped cases", count)
	}
}

// execute runs a must on the reference server over HTTP/1.1 and returns its outcomes.
func execute(ctx context.Context, run func(*harness.Env)) (all []runner.Outcome) {
	target := reference.New("listwatch", reference.Interceptors{})
	target.Variants = []string{"h1"}
	c := harness.Case{ID: "test/case", Subject: harness.Server, Transports: "h1", Rule: "x", Run: run}
	runner.Execute(ctx, c, target, func(string) bool { return true }, func(o runner.Outcome) { all = append(all, o) })
	return all
}

func TestOutcomeExplainsAFailure(t *testing.T) {
	got := execute(t.Context(), func(e *harness.Env) {
		e.Put("a")
		s := e.Dial("")
		s.Want("ADDED b")
	})
	if len(got) != 1 || got[0].Verdict != runner.Fail {
		t.Fatalf("got %+v, want one failure", got)
	}
	if m := strings.Join(got[0].Messages, "\n"); !strings.Contains(m, `got "ADDED a"`) ||
		!strings.Contains(m, `want "ADDED b"`) {
		t.Errorf("got messages %q, want the received and the expected event", m)
	}
	timeline := strings.Join(got[0].Timeline, "\n")
	for _, part := range []string{"put a", "conn 1 → ", "GET /things?watch=1", "conn 1 ← ", "200 OK"} {
		if !strings.Contains(timeline, part) {
			t.Errorf("the timeline has no %q:\n%s", part, timeline)
		}
	}
}

// A timeline over TLS shows what the ends have sent, not the records of TLS.
func TestTimelineOverTLSIsReadable(t *testing.T) {
	target := reference.New("listwatch", reference.Interceptors{})
	target.Variants = []string{"h1", "h2"}
	c := harness.Case{
		ID: "test/case", Subject: harness.Server, Transports: "h1 h2", Rule: "x", Setup: harness.Setup{TLS: true},
		Run: func(e *harness.Env) {
			start := e.Put("a")
			s := e.Dial(harness.From(start))
			e.PutJSON("b", `{"text":"`+strings.Repeat("x", 40_000)+`"}`) // several records
			e.Put("last")
			s.Want("ADDED b", "ADDED last")
			e.ListRaw("limit=1").WantStatus(200)
			e.Error("on purpose")
		},
	}
	runner.Execute(t.Context(), c, target, func(string) bool { return true }, func(o runner.Outcome) {
		timeline := strings.Join(o.Timeline, "\n")
		wanted := []string{`{\"type\":\"ADDED\"`, "GET /things?watch=1&", "GET /things?limit=1 ", "200 OK"}
		if o.Variant == "h2" {
			wanted = wanted[:1] // the headers are compressed
		}
		for _, part := range wanted {
			if !strings.Contains(timeline, part) {
				t.Errorf("%s: the timeline has no %q:\n%s", o.Name(), part, timeline)
			}
		}
		if strings.Contains(timeline, `"\x17\x03\x03`) {
			t.Errorf("%s: the timeline shows records of TLS:\n%s", o.Name(), timeline)
		}
	})
}

func TestTargetSeedDeterminesRandomNumbers(t *testing.T) {
	target := reference.New("listwatch", reference.Interceptors{})
	target.Variants, target.Seed = []string{"h1"}, 17
	var numbers []uint64
	c := harness.Case{ID: "test/case", Subject: harness.Server, Transports: "h1", Rule: "x"}
	c.Run = func(e *harness.Env) {
		numbers = append(numbers, e.Random().Uint64())
		e.Error("on purpose")
	}
	for range 2 {
		runner.Execute(t.Context(), c, target, func(string) bool { return true }, func(o runner.Outcome) {
			if log := strings.Join(o.Log, "\n"); !strings.Contains(log, "seed 17") {
				t.Errorf("got log %q, want the seed 17", log)
			}
		})
	}
	if len(numbers) != 2 || numbers[0] != numbers[1] {
		t.Errorf("got numbers %d, want the same number twice", numbers)
	}
}

func TestExecuteSurvivesPanicsAndInterruption(t *testing.T) {
	cleaned := false
	got := execute(t.Context(), func(e *harness.Env) {
		e.Cleanup(func() { cleaned = true })
		panic("on purpose")
	})
	if len(got) != 1 || got[0].Verdict != runner.Fail ||
		!strings.Contains(got[0].Messages[0], "on purpose") || !cleaned {
		t.Errorf("got %+v, cleaned up: %v; want a failure that names the panic", got, cleaned)
	}
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	got = execute(ctx, func(*harness.Env) {
		cancel()
		<-release
	})
	close(release)
	if len(got) != 1 || got[0].Verdict != runner.NotRun || got[0].Reason != context.Canceled.Error() {
		t.Errorf("got %+v, want one interrupted outcome", got)
	}
	if got = execute(ctx, func(*harness.Env) {}); len(got) != 1 || got[0].Verdict != runner.NotRun {
		t.Errorf("after the end of the context: got %+v, want not-run", got)
	}
}
