package mutants

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// Most of the time of a run is spent waiting for events that the mutant withholds, so the
// runs are parallel. Cases that measure memory or goroutines run alone.
func TestEveryMutantIsCaughtByItsCases(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: most mutants make a case wait for a timeout")
	}
	for _, m := range cases.Mutants() {
		for _, id := range m.Breaks {
			t.Run(m.Name+"/"+id, func(t *testing.T) {
				i := slices.IndexFunc(cases.All(), func(c harness.Case) bool { return c.ID == id && c.CoveredBy == "" })
				if i < 0 {
					t.Fatalf("%s breaks %s, which is not a case", m.Name, id)
				}
				if !cases.All()[i].RunsAlone {
					t.Parallel()
				}
				bubble := func(run func(context.Context)) {
					synctest.Test(t, func(t *testing.T) { run(t.Context()) })
				}
				if c := cases.All()[i]; !runner.Detects(t.Context(), c, m.Target(), bubble) {
					t.Errorf("%s passed, but this mutant breaks its rule (%s)", c.ID, c.Rule)
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
			t.Errorf("%s: no mutant breaks this case, so nothing shows that it can fail", c.ID)
		}
	}
}

func TestMutantsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range cases.Mutants() {
		if m.Name == "" || len(m.Breaks) == 0 || seen[m.Name] {
			t.Errorf("mutant %q: the name is empty or used twice, or Breaks is empty", m.Name)
		}
		seen[m.Name] = true
	}
}

func TestRunCountsWhatIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, nil); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled run: got %v, %v", r, err)
	}
	killed, blind, left := []string{"a/b"}, []string{"a/c"}, []string{"a/d"}
	r := Result{Trials: []MutantResult{{Name: "1", DetectedBy: killed}, {Name: "2", DetectedBy: killed, MissedBy: blind}, {Name: "3", NotTried: left}, {Name: "4", DetectedBy: killed, NotTried: left}}}
	if k, s, l := r.Counts(); k != 2 || s != 1 || l != 1 || r.OK() {
		t.Errorf("got %d killed, %d survived, %d not tried, OK %v; want 2, 1, 1, false", k, s, l, r.OK())
	}
}
