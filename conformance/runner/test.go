package runner

import (
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/conformance/harness"
)

// TestVariants is [Test] and, if tested is not nil, reports each variant that was run and the abilities that it used.
func TestVariants(t *testing.T, c harness.Case, target harness.Target, tested func(name string, used harness.Ability)) {
	if c.Run == nil {
		t.Skip(c.CoveredBy)
	}
	if missing := c.Needs &^ target.Abilities; missing != 0 {
		t.Skipf("%s can't: %s", target.Name, missing)
	}
	for _, w := range c.VariantsOn(target) {
		for _, mode := range c.Modes {
			fake := mode == harness.FakeTime
			if fake && !target.SupportsFakeTime {
				continue
			}
			name := w.Name
			if fake {
				name += "/fake"
			}
			t.Run(name, func(t *testing.T) {
				used := testVariant(t, c, target, w, fake)
				if tested != nil && !t.Skipped() {
					tested(name, used)
				}
			})
		}
	}
}

// testVariant runs c in one way; where it fails, it shows the timeline.
func testVariant(t *testing.T, c harness.Case, target harness.Target, w harness.Variant, fake bool) (used harness.Ability) {
	run := func(t *testing.T) {
		s := c.Setup
		s.FakeTime = fake
		log := harness.NewTimeline()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: %s\n%s", c.ID, c.Rule, log)
			}
		})
		e := harness.NewEnv(t, target, w, s, log)
		c.Run(e)
		used = e.UsedAbilities()
	}
	if fake {
		synctest.Test(t, run)
	} else {
		run(t)
	}
	return used
}

// Test runs c as subtests of t, one for each way to reach the target, or skips it and says why.
func Test(t *testing.T, c harness.Case, target harness.Target) { TestVariants(t, c, target, nil) }
