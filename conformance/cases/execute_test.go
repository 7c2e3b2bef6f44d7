package cases

import (
	"context"
	"strings"
	"testing"
)

func TestExecuteOutsideOfGoTestFindsOurServerRight(t *testing.T) {
	target := Own("listwatch", Interceptors{})
	count := map[Verdict]int{}
	for _, c := range All() {
		if c.Group() != "handshake" && c.Group() != "error" {
			continue // the others take longer, and TestCases runs them
		}
		c.Execute(t.Context(), target, func(string) bool { return true }, func(o Outcome) {
			count[o.Verdict]++
			if o.Verdict != Pass && o.Verdict != Skip {
				t.Errorf("%s: %s: %q", o.Name(), o.Verdict, o.Messages)
			}
			if o.Verdict == Skip && o.Reason == "" {
				t.Errorf("%s was skipped without a reason", o.Name())
			}
		})
	}
	if count[Pass] < 50 || count[Skip] == 0 {
		t.Errorf("got %v, want many that pass and some that can't be run", count)
	}
}

// outcomes executes a case of level M that does run, against our server over HTTP/1.1.
func outcomes(ctx context.Context, run func(*env)) (all []Outcome) {
	target := Own("listwatch", Interceptors{})
	target.Variants = []string{"h1"}
	c := Case{ID: "test/case", Level: Must, Subject: Server, Transports: "h1", Mode: "r", Rule: "x", run: run}
	c.Execute(ctx, target, func(string) bool { return true }, func(o Outcome) { all = append(all, o) })
	return all
}

func TestExecuteTellsWhyACaseFailed(t *testing.T) {
	got := outcomes(t.Context(), func(e *env) {
		e.put("a")
		s := e.dial("")
		s.want("ADDED b")
	})
	if len(got) != 1 || got[0].Verdict != Fail {
		t.Fatalf("got %+v, want one failure", got)
	}
	if m := strings.Join(got[0].Messages, "\n"); !strings.Contains(m, `got "ADDED a"`) || !strings.Contains(m, `want "ADDED b"`) {
		t.Errorf("got messages %q, want what came and what was wanted", m)
	}
	timeline := strings.Join(got[0].Timeline, "\n")
	for _, part := range []string{"put a", "conn 1 → ", "GET /things?watch=1", "conn 1 ← ", "200 OK"} {
		if !strings.Contains(timeline, part) {
			t.Errorf("the timeline has no %q:\n%s", part, timeline)
		}
	}
}

func TestExecuteSurvivesACaseThatPanicsOrHangsWhenItIsInterrupted(t *testing.T) {
	cleaned := false
	got := outcomes(t.Context(), func(e *env) {
		e.Cleanup(func() { cleaned = true })
		panic("on purpose")
	})
	if len(got) != 1 || got[0].Verdict != Fail || !strings.Contains(got[0].Messages[0], "on purpose") || !cleaned {
		t.Errorf("got %+v, cleaned up %v; want a failure that says so", got, cleaned)
	}
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	got = outcomes(ctx, func(*env) {
		cancel()
		<-release
	})
	close(release)
	if len(got) != 1 || got[0].Verdict != NotRun || got[0].Reason != context.Canceled.Error() {
		t.Errorf("got %+v, want one that was interrupted", got)
	}
	if got = outcomes(ctx, func(*env) {}); len(got) != 1 || got[0].Verdict != NotRun {
		t.Errorf("after the end of the context: got %+v, want not-run", got)
	}
}
