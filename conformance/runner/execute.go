// Package runner runs conformance cases. [Execute] runs a case in any program, and [Test] runs it
// as a Go test.
package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Execute runs c on the target, one variant after another, and passes each outcome to report. It
// calls wants with the name of each run, ID/VARIANT. If wants returns false, Execute skips the run
// and reports no outcome for it. If ctx ends, the remaining runs have the verdict NotRun. If c
// hangs or panics, the run fails, and Execute continues with the next variant.
//
// Execute skips cases that need a fake clock: only [Test] can run them. If the client under test is
// another process, it runs cases of mode [harness.EitherTime] in real time.
func Execute(
	ctx context.Context, c harness.Case, target harness.Target, wants func(name string) bool, report func(Outcome),
) {
	if reason := skipReason(c, target); reason != "" {
		o := outcome(c, "")
		o.Verdict, o.Reason = Skip, reason
		missing := c.Needs &^ target.Abilities
		o.Inapplicable = len(c.VariantsOn(target)) == 0 || missing != 0 && missing&^harness.Properties == 0
		if wants(o.Name()) {
			report(o)
		}
		return
	}
	for _, variant := range c.VariantsOn(target) {
		o := outcome(c, variant.Name)
		if !wants(o.Name()) {
			continue
		}
		if ctx.Err() != nil {
			o.Verdict, o.Reason = NotRun, context.Cause(ctx).Error()
			report(o)
			continue
		}
		executeOn(ctx, c, target, variant, &o)
		report(o)
	}
}

// skipReason returns the reason why c cannot run on the target, or "" if it can.
func skipReason(c harness.Case, target harness.Target) string {
	missing := c.Needs &^ target.Abilities
	switch {
	case c.Run == nil:
		return coveredElsewhere(c)
	case missing != 0:
		return missing.MissingReason()
	case !c.RunsIn(harness.RealTime) && !(c.Mode == harness.EitherTime && target.OwnClock):
		return "it needs a fake clock: only go test runs it"
	case len(c.VariantsOn(target)) == 0:
		return "none of its transports is tested: " + c.AppliesTo()
	}
	return ""
}

// coveredElsewhere returns the reason why a case without a function cannot run. It does not name
// the test that covers the rule, because only developers of this module can run that test. The
// command "listwatch conformance explain" names the test.
func coveredElsewhere(c harness.Case) string {
	if strings.HasPrefix(c.CoveredBy, "lives in ") {
		return "only a Go test of this module covers it; listwatch conformance explain names the test"
	}
	return "no test yet: it " + c.CoveredBy
}

// Variants returns the names of the variants in which c is tested on the target.
func Variants(c harness.Case, target harness.Target) []string {
	var names []string
	for _, variant := range c.VariantsOn(target) {
		names = append(names, variant.Name)
	}
	return names
}

func executeOn(ctx context.Context, c harness.Case, target harness.Target, variant harness.Variant, o *Outcome) {
	limit := max(minCaseTimeout, 3*target.Patience)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, timedOut(limit))
	defer cancel()
	start := time.Now()
	r := newRecorder(ctx, o.Name())
	log := harness.NewTimeline()
	ready := make(chan struct{})
	go r.run(func() {
		e := harness.NewEnv(r, target, variant, c.Setup, log)
		close(ready)
		c.Run(e)
	})
	select {
	case <-r.done:
	case <-ctx.Done():
		failOnAdapterError(r, target) // an abandoned recorder ignores it
		r.abandon(context.Cause(ctx))
	}
	failOnAdapterError(r, target)
	o.Seconds = time.Since(start).Seconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	started := false
	select {
	case <-ready:
		started = true
	default:
	}
	o.Verdict = verdictOf(c, r, started)
	if r.interrupted != nil {
		o.Verdict, o.Reason = NotRun, r.interrupted.Error()
	}
	switch o.Verdict {
	case Skip:
		o.Reason = strings.Join(r.messages, "; ")
		// A case skips itself if the server does not offer something, such as a framing, or if the
		// client has not announced an ability.
		o.Inapplicable = !target.OwnClock
	case Info:
		o.Messages = slices.Clone(r.log)
	case Pass, NotRun:
	default:
		o.Messages, o.Log = slices.Clone(r.messages), slices.Clone(r.log)
	}
	if lines := log.String(); lines != "" {
		o.Timeline = strings.Split(lines, "\n")
		if v := o.Verdict; v == Pass || v == Info {
			o.Timeline = o.Timeline[max(0, len(o.Timeline)-passedTimelineLines):]
		}
	}
}

// failOnAdapterError reports the errors of the target's adapter as a failure.
func failOnAdapterError(r *recorder, target harness.Target) {
	if target.AdapterError == nil {
		return
	}
	if err := target.AdapterError(); err != nil {
		r.Error(err)
	}
}

// passedTimelineLines is the number of timeline lines that a passed run keeps: enough to see
// what the case does.
const passedTimelineLines = 20

// verdictOf returns the verdict for the results in r. started is false if opening the
// target failed, so that the case did not start.
func verdictOf(c harness.Case, r *recorder, started bool) Verdict {
	switch {
	case r.failed && !started:
		return SetupError
	case r.failed && c.Strength == harness.Must:
		return Fail
	case r.failed:
		return Warn
	case r.skipped:
		return Skip
	case c.Strength == harness.Measurement:
		return Info
	}
	return Pass
}
