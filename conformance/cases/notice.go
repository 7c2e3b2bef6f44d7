package cases

import "context"

// Notices reports whether c fails on the target in any of its ways: what fails nobody proves nothing. bubble runs a function with a clock of
// its own and a context that ends with that; where it is nil, the lane that needs one is left out. A case without a test here notices nothing.
func (c Case) Detects(ctx context.Context, target Target, bubble func(run func(ctx context.Context))) bool {
	if c.run == nil || c.needs&^target.Abilities != 0 {
		return false
	}
	for _, w := range c.waysOf(target) {
		for _, lane := range c.Mode {
			failed := false
			switch {
			case ctx.Err() != nil:
				return false
			case lane != 'f':
				o := c.outcome(target, w.name)
				c.executeOn(ctx, target, w, &o)
				failed = o.Verdict == Fail || o.Verdict == Warn
			case bubble != nil:
				bubble(func(ctx context.Context) { failed = c.failsInBubble(ctx, target, w) })
			}
			if failed {
				return true
			}
		}
	}
	return false
}

func (c Case) failsInBubble(ctx context.Context, target Target, w way) bool {
	r := newRecorder(ctx, c.ID)
	begun := false
	go r.run(func() {
		s := c.setup
		s.FakeTime = true
		e := newEnv(r, target, w, s, newTimeline())
		begun = true
		c.run(e)
	})
	<-r.done
	v := c.judge(r, begun)
	return v == Fail || v == Warn
}
