package runner

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// A Verdict is the result of a run of a case.
type Verdict string

// Warn is a failure of a case whose strength is not [harness.Must]. XFail is an expected failure;
// XPass is a pass where a failure was expected. SetupError means that the target could not be
// prepared for the case, so that the rule was not tested. NotRun means that the run was interrupted
// before the case finished.
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

// An Outcome is the result of one run of a case in one variant.
type Outcome struct {
	ID string `json:"id"`
	// Variant is the name of the variant, such as h1 or ws-native. It is empty if the whole case
	// was skipped.
	Variant string `json:"variant"`
	// Strength, Subject and Rule are copied from the case.
	Strength harness.Strength `json:"strength"`
	Subject  harness.Subject  `json:"subject"`
	Rule     string           `json:"rule"`
	Verdict  Verdict          `json:"verdict"`
	// Messages are the failures of the case in order, or the measurements if the verdict
	// is Info. Reason is the reason why the case was skipped or not run, or why the
	// failure was expected.
	Messages []string `json:"messages,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	// Inapplicable is set if the case was skipped because its rule does not concern the target, for
	// example if the target lacks a transport. Otherwise the suite could not test the rule.
	Inapplicable bool `json:"inapplicable,omitempty"`
	// Log contains the log lines of a failed case. Timeline contains the requests, writes and
	// events of the case, one per line; a passed case keeps only the last lines.
	Log      []string `json:"log,omitempty"`
	Timeline []string `json:"timeline,omitempty"`
	Seconds  float64  `json:"seconds"`
}

// Name returns the name of the run: ID/VARIANT, or only the ID if there is no variant.
func (o Outcome) Name() string {
	if o.Variant == "" {
		return o.ID
	}
	return o.ID + "/" + o.Variant
}

// outcome returns an Outcome of c in a variant. The caller fills in the verdict and the other
// results.
func outcome(c harness.Case, variant string) Outcome {
	return Outcome{
		ID: c.ID, Variant: variant, Strength: c.Strength, Subject: c.Side(), Rule: c.Rule,
	}
}

// minCaseTimeout is the minimum timeout of a case. Within a case, waiting for an event has
// a shorter timeout.
const minCaseTimeout = 30 * time.Second

// timedOut is the error of a case that did not finish within its timeout.
type timedOut time.Duration

// Error names the timeout.
func (t timedOut) Error() string {
	return fmt.Sprintf("the case did not finish within %v", time.Duration(t))
}

// IsFailure reports whether the verdict makes the whole run fail.
func (v Verdict) IsFailure() bool {
	return v == Fail || v == XPass || v == SetupError || v == NotRun
}
