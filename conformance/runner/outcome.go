package runner

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// A Verdict is how a run of a case ended.
type Verdict string

// The verdicts. Warn is a failure of a rule that is no must; XFail is one that was expected and XPass one that was expected and did not
// come. SetupError: the target could not be brought to where the case begins, so that nothing was learnt. NotRun: the run ended
// before it.
const (
	Pass       Verdict = "pass"
	Fail       Verdict = "fail"
	Warn       Verdict = "warn"
	Info       Verdict = "info"
	Skip       Verdict = "skip"
	XFail      Verdict = "xfail"
	XPass      Verdict = "xpass"
	SetupError Verdict = "setup-error"
	NotRun     Verdict = "not-run"
)

// An Outcome is one run of a case in one way.
type Outcome struct {
	ID      string `json:"id"`
	Variant string `json:"way"` // such as h1 or ws-gorilla; empty if the case ran in no variant
	// Target is the name of the target. Level, Subject and Rule are those of the case.
	Target  string          `json:"target"`
	Level   harness.Level   `json:"level"`
	Subject harness.Subject `json:"subject"`
	Rule    string          `json:"says"`
	Verdict Verdict         `json:"verdict"`
	// Messages are what the case found wrong, in order, or figures of an Info; Reason is why it was skipped or not run.
	Messages []string `json:"messages,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	// Log is what the case told beside, for failures alone; Timeline what it did and saw at the end, a line each: a few where it passed.
	Log      []string `json:"log,omitempty"`
	Timeline []string `json:"timeline,omitempty"`
	// Seconds is the time it took.
	Seconds float64 `json:"seconds"`
}

// Name is how the run is called: ID/VARIANT.
func (o Outcome) Name() string {
	if o.Variant == "" {
		return o.ID
	}
	return o.ID + "/" + o.Variant
}

// outcome returns what every run of c in w has.
func outcome(c harness.Case, target harness.Target, w string) Outcome {
	return Outcome{ID: c.ID, Variant: w, Target: target.Name, Level: c.Level, Subject: c.Subject, Rule: c.Rule}
}

// caseTime is how long a case may run at the least; those that wait for something give up before.
const caseTime = 30 * time.Second

// hung is the error of a case that did not come to its end in the time it had.
type hung time.Duration

// Error says how long that was.
func (h hung) Error() string { return fmt.Sprintf("the case did not end within %v", time.Duration(h)) }

// Bad reports whether a verdict makes a run fail.
func (v Verdict) IsFailure() bool {
	return v == Fail || v == XPass || v == SetupError || v == NotRun
}
