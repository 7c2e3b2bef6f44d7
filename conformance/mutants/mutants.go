// Package mutants has this module's server and client with one defect each. They show that the cases of package cases can fail: each mutant breaks
// some of them, and those must notice.
//
// [All] are the mutants, and [Run] counts how many are killed.
package mutants

import (
	"slices"
	"time"

	"github.com/listwatch/listwatch/conformance/cases"
)

// A Mutant is our server or client with one defect.
type Mutant struct {
	// Name says what is wrong with it.
	Name string
	// Breaks are the ids of cases. Each of them must fail.
	Breaks []string
	// Wrap is the defect.
	Defect cases.Interceptors
}

// patience is short: what a mutant keeps back never comes.
const patience = time.Second

// Target is what the cases are run on.
func (m Mutant) Target() cases.Target {
	t := cases.Own(m.Name, m.Defect)
	t.Patience = patience
	return t
}

// All returns every mutant, by the groups of the cases that it breaks first.
func All() []Mutant {
	return slices.Concat(
		handshakeMutants,
		framingMutants,
		resumeMutants,
		selectMutants,
		errorMutants,
		eventMutants,
		bookmarkMutants,
		initialMutants,
		largeMutants,
		unicodeMutants,
		timeoutMutants,
		slowMutants,
		dropMutants,
		drainMutants,
		orderMutants,
		authMutants,
		corsMutants,
		compMutants,
		concMutants,
		limitMutants,
		informerMutants,
	)
}
