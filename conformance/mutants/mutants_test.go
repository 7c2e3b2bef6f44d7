package mutants

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// The runs are parallel: most of their time is waiting for what a mutant keeps back.
func TestEveryMutantIsCaughtByItsCases(t *testing.T) {
	if testing.Short() {
		t.Skip("each case waits for what does not come")
	}
	for _, m := range All() {
		for _, id := range m.Breaks {
			t.Run(m.Name+"/"+id, func(t *testing.T) {
				t.Parallel()
				i := slices.IndexFunc(cases.All(), func(c cases.Case) bool { return c.ID == id && c.Elsewhere == "" })
				if i < 0 {
					t.Fatalf("%s breaks %s, and there is no such case", m.Name, id)
				}
				bubble := func(run func(context.Context)) {
					synctest.Test(t, func(t *testing.T) { run(t.Context()) })
				}
				if c := cases.All()[i]; !c.Notices(t.Context(), m.Target(), bubble) {
					t.Errorf("%s (%s) does not notice", c.ID, c.Says)
				}
			})
		}
	}
}

func TestEveryCaseHasAMutant(t *testing.T) {
	broken := map[string]bool{}
	for _, m := range All() {
		for _, id := range m.Breaks {
			broken[id] = true
		}
	}
	for _, c := range cases.All() {
		if c.Elsewhere == "" && c.Level != cases.Figure && !broken[c.ID] {
			t.Errorf("no mutant breaks %s: does it prove anything?", c.ID)
		}
	}
}

func TestMutantsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		if m.Name == "" || len(m.Breaks) == 0 || seen[m.Name] {
			t.Errorf("%q: it has no name, breaks nothing, or comes twice", m.Name)
		}
		seen[m.Name] = true
	}
}
