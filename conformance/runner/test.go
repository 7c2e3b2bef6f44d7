package runner

import (
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/conformance/harness"
)

// TestVariants is like [Test]. After each completed run, it calls tested with the name of the
// variant and the abilities that the case used, unless tested is nil. If the run used a fake clock,
// the name ends with "/fake".
func TestVariants(t *testing.T, c harness.Case, target harness.Target, tested func(name string, used harness.Ability)) {
	if c.Run == nil {
		t.Skip(c.CoveredBy)
	}
	if missing := c.Needs &^ target.Abilities; missing != 0 {
		t.Skipf("%s does not support: %s", target.Name, missing)
	}
	for _, variant := range c.VariantsOn(target) {
		for _, mode := range []harness.Mode{harness.FakeTime, harness.RealTime} {
			fake := mode == harness.FakeTime
			if !c.RunsIn(mode) || fake && !target.SupportsFakeTime {
				continue
			}
			name := variant.Name
			if fake {
				name += "/fake"
			}
			t.Run(name, func(t *testing.T) {
				used := testVariant(t, c, target, variant, fake)
				if tested != nil && !t.Skipped() {
					tested(name, used)
				}
			})
		}
	}
}

// testVariant runs c in one variant and returns the abilities that it used. If the case
// fails, the test log contains the timeline.
func testVariant(
	t *testing.T, c harness.Case, target harness.Target, variant harness.Variant, fake bool,
) (used harness.Ability) {
	run := func(t *testing.T) {
		s := c.Setup
		s.FakeTime = fake
		log := harness.NewTimeline()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: %s\n%s", c.ID, c.Rule, log)
			}
		})
		e := harness.NewEnv(t, target, variant, s, log)
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

// Test runs c as subtests of t, one for each variant of the target. If c cannot run on the
// target, Test skips it with the reason.
func Test(t *testing.T, c harness.Case, target harness.Target) { TestVariants(t, c, target, nil) }
