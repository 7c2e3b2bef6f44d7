package runner

import (
	"context"

	"github.com/listwatch/listwatch/conformance/harness"
)

// Notices reports whether c fails on the target in any of its ways: what fails nobody proves nothing. bubble runs a function with a clock of
// its own and a context that ends with that; where it is nil, the lane that needs one is left out. A case without a test here notices nothing.
func Detects(ctx context.Context, c harness.Case, target harness.Target, bubble func(run func(ctx context.Context))) bool {
	if c.Run == nil || c.Needs&^target.Abilities != 0 {
		return false
	}
	for _, w := range c.VariantsOn(target) {
		for _, mode := range c.Modes {
			failed := false
			switch {
			case ctx.Err() != nil:
				return false
			case mode != harness.FakeTime:
				o := outcome(c, target, w.Name)
				executeOn(ctx, c, target, w, &o)
				failed = o.Verdict == Fail || o.Verdict == Warn
			case bubble != nil:
				bubble(func(ctx context.Context) { failed = failsInBubble(ctx, c, target, w) })
			}
			if failed {
				return true
			}
		}
	}
	return false
}

func failsInBubble(ctx context.Context, c harness.Case, target harness.Target, w harness.Variant) bool {
	r := newRecorder(ctx, c.ID)
	begun := false
	go r.run(func() {
		s := c.Setup
		s.FakeTime = true
		e := harness.NewEnv(r, target, w, s, harness.NewTimeline())
		begun = true
		c.Run(e)
	})
	<-r.done
	v := verdictOf(c, r, begun)
	return v == Fail || v == Warn
}
