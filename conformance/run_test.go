package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
)

func ownServer() conformance.Target { return reference.New("listwatch", reference.Interceptors{}) }

func TestExecuteRunsSelectedCases(t *testing.T) {
	var names []string
	o := conformance.Options{
		Run:  []string{"select/field-name", "select/field-unknown", "error/404/h2", "handshake/h2c-upgrade-ignored"},
		Skip: []string{"select/*/ws-*", "select/field-unknown"},
	}
	r, err := conformance.Execute(t.Context(), ownServer(), o,
		func(out conformance.Outcome) { names = append(names, out.Name()) })
	if err != nil {
		t.Fatal(err)
	}
	want := "handshake/h2c-upgrade-ignored/h1 handshake/h2c-upgrade-ignored/h1-standard select/field-name/h1 " +
		"select/field-name/h1-standard select/field-name/h2 select/field-name/h2-nethttp error/404/h2"
	if got := strings.Join(names, " "); got != want || !r.OK() {
		t.Errorf("got %s, OK %v; want %s", got, r.OK(), want)
	}
	if len(r.Outcomes) != len(names) {
		t.Errorf("the report has %d outcomes of %d", len(r.Outcomes), len(names))
	}
}

func TestExecuteReportsInterruption(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	r, err := conformance.Execute(ctx, ownServer(), conformance.Options{Run: []string{"select/field-name"}}, nil)
	if err != nil || r.OK() || len(r.Outcomes) == 0 || r.Outcomes[0].Verdict != runner.NotRun ||
		r.Outcomes[0].Reason != "enough" {
		t.Errorf("got %+v, %v; want the verdict not-run and the reason", r, err)
	}
}

func TestKnownFailuresMustFailAndHaveReasons(t *testing.T) {
	known, err := conformance.ParseKnownFailures(strings.NewReader("# ours\n\nselect/field-name # on " +
		"purpose\nno-such/case # x\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := conformance.Execute(t.Context(), ownServer(),
		conformance.Options{Run: []string{"select/field-name"}, KnownFailures: known}, nil)
	if err != nil || r.OK() || r.Outcomes[0].Verdict != runner.XPass || len(r.UnmatchedPatterns) != 1 ||
		r.UnmatchedPatterns[0] != "no-such/case" {
		t.Errorf("got %+v, %v; want xpass and an unmatched pattern", r, err)
	}
	for _, bad := range []string{
		"select/field-name", "select/field-name #", "a/b/c/d # x", "select/[ # x", "# only a comment\nx/y",
	} {
		if _, err := conformance.ParseKnownFailures(strings.NewReader(bad)); !errors.Is(err, listwatch.Invalid) ||
			!strings.Contains(err.Error(), "line") {
			t.Errorf("%q: got %v, want an error of code Invalid with the line", bad, err)
		}
	}
}

// The known failures of a target can be passed to a run of a few of its cases.
func TestKnownFailuresOutsideTheRunAreIgnored(t *testing.T) {
	known, err := conformance.ParseKnownFailures(strings.NewReader(
		"select/bad-syntax/h1 # a case that is not selected\nselect/field-name/h2 # a variant that is not selected\n" +
			"select/field-name/h9 # no such variant\nresume/storm # no such case\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := conformance.Execute(t.Context(), ownServer(),
		conformance.Options{Run: []string{"select/field-name/h1"}, KnownFailures: known}, nil)
	if want := []string{"select/field-name/h9", "resume/storm"}; err != nil ||
		!slices.Equal(r.UnmatchedPatterns, want) {
		t.Errorf("got %q, %v; want %q", r.UnmatchedPatterns, err, want)
	}
}

func TestUnmatchedPatternIsRefused(t *testing.T) {
	for _, p := range []string{"nothing", "select/nothing", "select/[", "", "a/b/c/d"} {
		if _, err := conformance.Execute(t.Context(), ownServer(), conformance.Options{Run: []string{p}},
			nil); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%q: got %v, want an error of code Invalid", p, err)
		}
	}
}
