package harness

import (
	"context"
)

// A T receives the results of a case. *testing.T implements T, and each method has the same meaning
// as in package testing.
type T interface {
	// Name returns the name of the run.
	Name() string
	// Context returns a context that is canceled at the end of the run.
	Context() context.Context
	// Cleanup registers f to be called at the end of the run, in last-in, first-out order.
	Cleanup(f func())
	// Helper marks the caller as a helper, whose lines are not reported.
	Helper()
	// Failed reports whether the run has failed.
	Failed() bool
	Log(args ...any)                   // adds a line to the report
	Logf(format string, args ...any)   // like Log, with a format string
	Error(args ...any)                 // reports a failure and continues the case
	Errorf(format string, args ...any) // like Error, with a format string
	Fatal(args ...any)                 // reports a failure and ends the case
	Fatalf(format string, args ...any) // like Fatal, with a format string
	Skipf(format string, args ...any)  // ends a case that cannot run and reports the reason
}
