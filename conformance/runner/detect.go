package runner

import (
	"context"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Detects reports whether c fails on the target in any variant. Use it with targets that have a
// defect: a case that passes despite every defect proves nothing. The last parameter, bubble, is a
// function that must call its argument in a testing/synctest bubble, with a context that ends with
// the bubble. If bubble is nil, Detects skips the mode with a fake clock. Detects returns false if
// c has no function Run, or if the target lacks an ability that c needs.
func Detects(
	ctx context.Context, c harness.Case, target harness.Target, bubble func(run func(ctx context.Context)),
) bool {
	if c.Run == nil || c.Needs&^target.Abilities != 0 {
		return false
	}
	for _, variant := range c.VariantsOn(target) {
		for _, mode := range []harness.Mode{harness.FakeTime, harness.RealTime} {
			failed := false
			switch {
			case ctx.Err() != nil:
				return false
			case !c.RunsIn(mode):
			case mode != harness.FakeTime:
				o := outcome(c, target, variant.Name)
				executeOn(ctx, c, target, variant, &o)
				failed = o.Verdict == Fail || o.Verdict == Warn
			case bubble != nil:
				bubble(func(ctx context.Context) { failed = failsInBubble(ctx, c, target, variant) })
			}
			if failed {
				return true
			}
		}
	}
	return false
}

func failsInBubble(ctx context.Context, c harness.Case, target harness.Target, variant harness.Variant) bool {
	r := newRecorder(ctx, c.ID)
	started := false
	go r.run(func() {
		s := c.Setup
		s.FakeTime = true
		e := harness.NewEnv(r, target, variant, s, harness.NewTimeline())
		started = true
		c.Run(e)
	})
	<-r.done
	v := verdictOf(c, r, started)
	return v == Fail || v == Warn
}
