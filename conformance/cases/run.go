package cases

import (
	"testing"
	"testing/synctest"
)

// Run runs every case that the target's abilities allow, each as subtests of t: GROUP/NAME/WAY. Others are skipped, with the reason.
func Run(t *testing.T, target Target) {
	for _, c := range All() {
		t.Run(c.ID, func(t *testing.T) { c.test(t, target, nil) })
	}
}

// test runs c in every way. told, where it is not nil, is told what each run used.
func (c Case) test(t *testing.T, target Target, told func(name string, used Ability)) {
	if c.run == nil {
		t.Skip(c.CoveredBy)
	}
	if missing := c.needs &^ target.Abilities; missing != 0 {
		t.Skipf("%s can't: %s", target.Name, missing)
	}
	for _, w := range c.waysOf(target) {
		for _, lane := range c.Mode {
			fake := lane == 'f'
			if fake && !target.SupportsFakeTime {
				continue
			}
			name := w.name
			if fake {
				name += "/fake"
			}
			t.Run(name, func(t *testing.T) {
				used := c.testOn(t, target, w, fake)
				if told != nil && !t.Skipped() {
					told(name, used)
				}
			})
		}
	}
}

// testOn runs c in one way; where it fails, it shows the timeline.
func (c Case) testOn(t *testing.T, target Target, w way, fake bool) (used Ability) {
	run := func(t *testing.T) {
		s := c.setup
		s.FakeTime = fake
		log := newTimeline()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: %s\n%s", c.ID, c.Rule, log)
			}
		})
		e := newEnv(t, target, w, s, log)
		c.run(e)
		used = e.uses.used
	}
	if fake {
		synctest.Test(t, run)
	} else {
		run(t)
	}
	return used
}

// Test runs c as subtests of t, one for each way to reach the target, or skips it and says why.
func (c Case) Test(t *testing.T, target Target) { c.test(t, target, nil) }
