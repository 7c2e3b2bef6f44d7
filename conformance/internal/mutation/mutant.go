// Package mutation provides the building blocks of mutants. A [Mutant] is this module's
// server or client with one defect, and the conformance cases that it breaks must fail.
// Functions such as [OnEvents], [OnHeader] or [OnSend] build the defects.
package mutation

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
)

// A Mutant is this module's server or client with one defect.
type Mutant struct {
	// Name describes the defect.
	Name string
	// Breaks lists the IDs of the cases that must fail.
	Breaks []string
	// Defect wraps parts of the server or client.
	Defect reference.Interceptors
}

// patience is the time that a case waits for an expected event. It is short because a
// mutant that withholds an event never sends it.
const patience = time.Second

// Target returns the reference server with the defect of m.
func (m Mutant) Target() harness.Target {
	t := reference.New(m.Name, m.Defect)
	t.Patience = patience
	return t
}
