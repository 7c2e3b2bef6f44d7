// Package runner executes conformance cases: [Execute] anywhere, [Test] in a Go test, and [Detects] to learn
// whether a case notices a defect.
package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Execute runs c on the target in every way that wants chooses by its name, ID/VARIANT, one after another, and tells each outcome to report.
// It returns when all are told; where ctx ends, those that are left are not run. A case that hangs or panics is a failure, and does not keep others from
// running.
//
// Cases that need time to pass can't be run here, but by [Run] in a test.
func Execute(ctx context.Context, c harness.Case, target harness.Target, wants func(name string) bool, report func(Outcome)) {
	if reason := skipReason(c, target); reason != "" {
		o := outcome(c, target, "")
		o.Verdict, o.Reason = Skip, reason
		if wants(o.Name()) {
			report(o)
		}
		return
	}
	for _, w := range c.VariantsOn(target) {
		o := outcome(c, target, w.Name)
		if !wants(o.Name()) {
			continue
		}
		if ctx.Err() != nil {
			o.Verdict, o.Reason = NotRun, context.Cause(ctx).Error()
			report(o)
			continue
		}
		executeOn(ctx, c, target, w, &o)
		report(o)
	}
}

// skipReason returns why c can't be run on the target; empty where it can.
func skipReason(c harness.Case, target harness.Target) string {
	missing := c.Needs &^ target.Abilities
	switch {
	case c.Run == nil:
		return coveredElsewhere(c)
	case missing != 0:
		return missing.Lack()
	case !c.RunsIn(harness.RealTime):
		return "it needs a clock of its own: go test runs it"
	case len(c.VariantsOn(target)) == 0:
		return "it is about transports that are not tested: " + c.Transports
	}
	return ""
}

// coveredElsewhere says why a case that has no test here can't be run. Where it lives is of use to those who work on this module: explain tells.
func coveredElsewhere(c harness.Case) string {
	if strings.HasPrefix(c.CoveredBy, "lives in ") {
		return "only go test of this module runs it; explain says which"
	}
	return "nothing tests it yet: it " + c.CoveredBy
}

// Ways returns the names of the ways in which c is tested on the target.
func Variants(c harness.Case, target harness.Target) []string {
	var names []string
	for _, w := range c.VariantsOn(target) {
		names = append(names, w.Name)
	}
	return names
}

func executeOn(ctx context.Context, c harness.Case, target harness.Target, w harness.Variant, o *Outcome) {
	limit := max(caseTime, 3*target.Patience)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, hung(limit))
	defer cancel()
	start := time.Now()
	r := newRecorder(ctx, o.Name())
	log := harness.NewTimeline()
	ready := make(chan struct{})
	go r.run(func() {
		e := harness.NewEnv(r, target, w, c.Setup, log)
		close(ready)
		c.Run(e)
	})
	select {
	case <-r.done:
	case <-ctx.Done():
		r.giveUp(context.Cause(ctx))
	}
	o.Seconds = time.Since(start).Seconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := false
	select {
	case <-ready:
		begun = true
	default:
	}
	o.Verdict = verdictOf(c, r, begun)
	if r.interrupted != nil {
		o.Verdict, o.Reason = NotRun, r.interrupted.Error()
	}
	switch o.Verdict {
	case Skip:
		o.Reason = strings.Join(r.messages, "; ")
	case Info:
		o.Messages = slices.Clone(r.log)
	case Pass, NotRun:
	default:
		o.Messages, o.Log = slices.Clone(r.messages), slices.Clone(r.log)
	}
	if lines := log.String(); lines != "" {
		o.Timeline = strings.Split(lines, "\n")
		if v := o.Verdict; v == Pass || v == Info {
			o.Timeline = o.Timeline[max(0, len(o.Timeline)-shownOfPass):]
		}
	}
}

// shownOfPass is how much of its timeline a run that passed keeps: enough to see what the case does.
const shownOfPass = 20

// verdictOf turns what r recorded into a verdict. begun: there was a site.
func verdictOf(c harness.Case, r *recorder, begun bool) Verdict {
	switch {
	case r.failed && !begun:
		return SetupError
	case r.failed && c.Level == harness.Must:
		return Fail
	case r.failed:
		return Warn
	case r.skipped:
		return Skip
	case c.Level == harness.Measurement:
		return Info
	}
	return Pass
}
