package wsprotocol

import (
	"path"
	"testing"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/runner"
)

// brokenBy returns the trials that m is to fail.
func brokenBy(t *testing.T, m mutation.Mutant) (trials []harness.Case) {
	t.Helper()
	for _, pattern := range m.Breaks {
		before := len(trials)
		for _, c := range Cases() {
			ok, err := path.Match(pattern, c.ID)
			if err != nil {
				t.Fatalf("%s: %s: %v", m.Name, pattern, err)
			}
			if ok {
				trials = append(trials, c)
			}
		}
		if len(trials) == before {
			t.Errorf("%s: no trial is called %s", m.Name, pattern)
		}
	}
	return trials
}

// The runs are parallel: much of their time is waiting for what a mutant keeps back.
func TestEveryTrialNoticesItsMutants(t *testing.T) {
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for _, c := range brokenBy(t, m) {
				if !runner.Detects(t.Context(), c, m.Target(), nil) {
					t.Errorf("%s does not notice", c.ID)
				}
			}
		})
	}
}

func TestEveryTrialHasAMutant(t *testing.T) {
	noticed := map[string]bool{}
	for _, m := range Mutants() {
		for _, c := range brokenBy(t, m) {
			noticed[c.ID] = true
		}
	}
	for _, c := range Cases() {
		if !noticed[c.ID] {
			t.Errorf("no mutant breaks %s: does it prove anything?", c.ID)
		}
	}
}
