package cases

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Execute runs c on the target in every way that wants chooses by its name, ID/WAY, one after another, and tells each outcome to report.
// It returns when all are told; where ctx ends, those that are left are not run. A case that hangs or panics is a failure, and does not keep others from
// running.
//
// Cases that need time to pass can't be run here, but by [Run] in a test.
func (c Case) Execute(ctx context.Context, target Target, wants func(name string) bool, report func(Outcome)) {
	if reason := c.excuse(target); reason != "" {
		o := c.outcome(target, "")
		o.Verdict, o.Reason = Skip, reason
		if wants(o.Name()) {
			report(o)
		}
		return
	}
	for _, w := range c.waysOf(target) {
		o := c.outcome(target, w.name)
		if !wants(o.Name()) {
			continue
		}
		if ctx.Err() != nil {
			o.Verdict, o.Reason = NotRun, context.Cause(ctx).Error()
			report(o)
			continue
		}
		c.executeOn(ctx, target, w, &o)
		report(o)
	}
}

// excuse returns why c can't be run on the target; empty where it can.
func (c Case) excuse(target Target) string {
	missing := c.needs &^ target.Abilities
	switch {
	case c.run == nil:
		return c.elsewhere()
	case missing != 0:
		return missing.lack()
	case !strings.Contains(c.Mode, "r"):
		return "it needs a clock of its own: go test runs it"
	case len(c.waysOf(target)) == 0:
		return "it is about transports that are not tested: " + c.Transports
	}
	return ""
}

// elsewhere says why a case that has no test here can't be run. Where it lives is of use to those who work on this module: explain tells.
func (c Case) elsewhere() string {
	if strings.HasPrefix(c.CoveredBy, "lives in ") {
		return "only go test of this module runs it; explain says which"
	}
	return "nothing tests it yet: it " + c.CoveredBy
}

// Ways returns the names of the ways in which c is tested on the target.
func (c Case) Variants(target Target) []string {
	var names []string
	for _, w := range c.waysOf(target) {
		names = append(names, w.name)
	}
	return names
}

func (c Case) executeOn(ctx context.Context, target Target, w way, o *Outcome) {
	limit := max(caseTime, 3*target.Patience)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, hung(limit))
	defer cancel()
	start := time.Now()
	r := newRecorder(ctx, o.Name())
	log := newTimeline()
	ready := make(chan struct{})
	go r.run(func() {
		e := newEnv(r, target, w, c.setup, log)
		close(ready)
		c.run(e)
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
	o.Verdict = c.judge(r, begun)
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

// judge turns what r recorded into a verdict. begun: there was a site.
func (c Case) judge(r *recorder, begun bool) Verdict {
	switch {
	case r.failed && !begun:
		return SetupError
	case r.failed && c.Level == Must:
		return Fail
	case r.failed:
		return Warn
	case r.skipped:
		return Skip
	case c.Level == Measurement:
		return Info
	}
	return Pass
}
