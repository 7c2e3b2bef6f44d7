// Package mutation has what the mutants of the conformance cases are made of. A [Mutant] is this module's
// server or client with one defect; the cases that it breaks must fail. Functions such as [OnEvents],
// [OnHeader] or [OnSend] build the defects.
package mutation

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
)

// A Mutant is our server or client with one defect.
type Mutant struct {
	// Name says what is wrong with it.
	Name string
	// Breaks are the ids of cases. Each of them must fail.
	Breaks []string
	// Wrap is the defect.
	Defect reference.Interceptors
}

// patience is short: what a mutant keeps back never comes.
const patience = time.Second

// Target is what the cases are run on.
func (m Mutant) Target() harness.Target {
	t := reference.New(m.Name, m.Defect)
	t.Patience = patience
	return t
}
