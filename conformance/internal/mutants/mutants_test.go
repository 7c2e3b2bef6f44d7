package mutants

import (
	"slices"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/racetest"
)

// A mutant is this module's server or client with one defect.
type mutant struct {
	// Name describes the defect.
	Name string
	// Breaks lists the IDs of the cases that must fail.
	Breaks []string
	// Defect wraps parts of the server or client.
	Defect defect
}

// A defect wraps parts of the reference server or client. Functions such as onEvents, onHeader and
// onSend build the wrappers.
type defect = reference.Interceptors

// patience is the time that a case waits for an expected event. It is short because a
// mutant that withholds an event never sends it.
const patience = time.Second

// Target returns the reference target with the defect of m.
func (m mutant) Target() harness.Target {
	t := reference.New(m.Name, m.Defect)
	t.Patience = patience
	return t
}

// allMutants returns the mutants of all groups of cases.
func allMutants() []mutant {
	return slices.Concat(
		handshakeMutants,
		framingMutants,
		resumeMutants,
		selectorMutants,
		apierrorMutants,
		eventMutants,
		bookmarkMutants,
		initialMutants,
		sinceMutants,
		fieldsMutants,
		unionMutants,
		conflateMutants,
		expiryMutants,
		queryMutants,
		largeMutants,
		unicodeMutants,
		timeoutMutants,
		slowMutants,
		dropMutants,
		drainMutants,
		orderMutants,
		concurrencyMutants,
		authMutants,
		corsMutants,
		compressionMutants,
		limitMutants,
		informersMutants,
	)
}

// TestMain runs nothing with the race detector, because package cases runs all cases with it.
func TestMain(m *testing.M) {
	if !racetest.Enabled {
		leaktest.Main(m)
	}
}

// The runs are parallel, because they spend most of their time waiting for events that the mutant
// withholds. Cases that measure memory or goroutines run alone.
func TestEveryMutantIsCaughtByItsCases(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: most mutants make a case wait for a timeout")
	}
	for _, m := range allMutants() {
		for _, id := range m.Breaks {
			t.Run(m.Name+"/"+id, func(t *testing.T) {
				i := slices.IndexFunc(cases.All(), func(c harness.Case) bool { return c.ID == id && c.CoveredBy == "" })
				if i < 0 {
					t.Fatalf("%s breaks %s, which is not a case", m.Name, id)
				}
				if !cases.All()[i].RunsAlone {
					t.Parallel()
				}
				if c := cases.All()[i]; !detects(t, c, m.Target()) {
					t.Errorf("%s passed, but this mutant breaks its rule (%s)", c.ID, c.Rule)
				}
			})
		}
	}
}

func TestEveryCaseHasAMutant(t *testing.T) {
	broken := map[string]bool{}
	for _, m := range allMutants() {
		for _, id := range m.Breaks {
			broken[id] = true
		}
	}
	for _, c := range cases.All() {
		if c.CoveredBy == "" && c.Strength != harness.Measurement && !broken[c.ID] {
			t.Errorf("%s: no mutant breaks this case, so nothing shows that it can fail", c.ID)
		}
	}
}

func TestMutantsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range allMutants() {
		if m.Name == "" || seen[m.Name] {
			t.Errorf("mutant %q: the name is empty or used twice", m.Name)
		}
		if len(m.Breaks) == 0 {
			t.Errorf("mutant %q breaks nothing", m.Name)
		}
		seen[m.Name] = true
	}
}
