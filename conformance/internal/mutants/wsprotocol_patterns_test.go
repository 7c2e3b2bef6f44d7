package mutants

import (
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsprotocol"
	"github.com/listwatch/listwatch/conformance/runner"
)

// wsprotocolCases returns the cases of package wsprotocol. It builds them once, because that
// takes a while.
var wsprotocolCases = sync.OnceValue(wsprotocol.Cases)

// brokenBy returns the cases that m must fail.
func brokenBy(t *testing.T, m mutant) (trials []harness.Case) {
	t.Helper()
	for _, pattern := range m.Breaks {
		before := len(trials)
		for _, c := range wsprotocolCases() {
			ok, err := path.Match(pattern, c.ID)
			if err != nil {
				t.Fatalf("%s: %s: %v", m.Name, pattern, err)
			}
			if ok {
				trials = append(trials, c)
			}
		}
		if len(trials) == before {
			t.Errorf("%s: the pattern %s matches no case", m.Name, pattern)
		}
	}
	return trials
}

// The mutants run in parallel because most of the time is spent waiting for frames that a
// mutant does not send.
func TestFrameCasesDetectTheirMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	for _, m := range slices.Concat(serverMutants, clientMutants) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for _, c := range brokenBy(t, m) {
				if !runner.Detects(t.Context(), c, m.Target(), nil) {
					t.Errorf("%s passes with the mutant", c.ID)
				}
			}
		})
	}
}

func TestEveryFrameCaseHasAMutant(t *testing.T) {
	detected := map[string]bool{}
	for _, m := range slices.Concat(serverMutants, clientMutants) {
		for _, c := range brokenBy(t, m) {
			detected[c.ID] = true
		}
	}
	for _, c := range wsprotocolCases() {
		if !detected[c.ID] {
			t.Errorf("no mutant breaks %s, so nothing shows that the case can fail", c.ID)
		}
	}
}
