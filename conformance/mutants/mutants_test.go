package mutants

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// The runs are parallel, but those of cases that measure: most of their time is waiting for what a mutant keeps back.
func TestEveryMutantIsCaughtByItsCases(t *testing.T) {
	if testing.Short() {
		t.Skip("each case waits for what does not come")
	}
	for _, m := range cases.Mutants() {
		for _, id := range m.Breaks {
			t.Run(m.Name+"/"+id, func(t *testing.T) {
				i := slices.IndexFunc(cases.All(), func(c harness.Case) bool { return c.ID == id && c.CoveredBy == "" })
				if i < 0 {
					t.Fatalf("%s breaks %s, and there is no such case", m.Name, id)
				}
				if !cases.All()[i].RunsAlone {
					t.Parallel()
				}
				bubble := func(run func(context.Context)) {
					synctest.Test(t, func(t *testing.T) { run(t.Context()) })
				}
				if c := cases.All()[i]; !runner.Detects(t.Context(), c, m.Target(), bubble) {
					t.Errorf("%s (%s) does not notice", c.ID, c.Rule)
				}
			})
		}
	}
}

func TestEveryCaseHasAMutant(t *testing.T) {
	broken := map[string]bool{}
	for _, m := range cases.Mutants() {
		for _, id := range m.Breaks {
			broken[id] = true
		}
	}
	for _, c := range cases.All() {
		if c.CoveredBy == "" && c.Level != harness.Measurement && !broken[c.ID] {
			t.Errorf("no mutant breaks %s: does it prove anything?", c.ID)
		}
	}
}

func TestMutantsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range cases.Mutants() {
		if m.Name == "" || len(m.Breaks) == 0 || seen[m.Name] {
			t.Errorf("%q: it has no name, breaks nothing, or comes twice", m.Name)
		}
		seen[m.Name] = true
	}
}

func TestRunCountsWhatIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, nil); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was ended: got %v, %v", r, err)
	}
	killed, blind, left := []string{"a/b"}, []string{"a/c"}, []string{"a/d"}
	r := Result{Trials: []MutantResult{{Name: "1", DetectedBy: killed}, {Name: "2", DetectedBy: killed, MissedBy: blind}, {Name: "3", NotTried: left}, {Name: "4", DetectedBy: killed, NotTried: left}}}
	if k, s, l := r.Counts(); k != 2 || s != 1 || l != 1 || r.OK() {
		t.Errorf("got %d killed, %d survived, %d left, OK %v; want 2, 1, 1, false", k, s, l, r.OK())
	}
}
