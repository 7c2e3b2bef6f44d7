package checker

import (
	"fmt"
	"time"
)

// A convergence tracks when a watcher reaches the version of each [Heal]. A Heal marks the end of
// all faults.
type convergence struct {
	heals        []Heal
	targets      []int           // for each heal, the position (see projection) to reach
	reachedCount int             // the number of targets that the watcher has reached
	took         []time.Duration // time from each heal until its target was reached
}

func newConvergence(h *History, p *projection) convergence {
	g := convergence{heals: h.Heals}
	for _, heal := range h.Heals {
		g.targets = append(g.targets, p.firstAfter(heal.Version))
	}
	return g
}

// update records the progress of the watcher at a time.
func (c *convergence) update(w *verifier, at time.Duration) {
	for w.phase == following && c.reachedCount < len(c.targets) && w.high >= c.targets[c.reachedCount] {
		c.took = append(c.took, max(0, at-c.heals[c.reachedCount].At))
		c.reachedCount++
	}
}

// finish reports a watcher that reached the version of the last heal too late, or never.
func (c *convergence) finish(w *verifier) {
	for c.reachedCount < len(c.targets) && c.targets[c.reachedCount] == 0 {
		c.took = append(c.took, 0)
		c.reachedCount++
	}
	w.check.summary.converged = append(w.check.summary.converged, c.took...)
	if len(c.heals) == 0 {
		return
	}
	last := c.heals[len(c.heals)-1]
	limit := w.check.history.Meta.ConvergenceTimeout
	want := fmt.Sprintf("everything up to version %d", last.Version)
	switch {
	case c.reachedCount < len(c.heals):
		due := c.targets[len(c.targets)-1] - 1
		w.report(Converged, want+": "+w.describe(due), w.progress())
	case limit > 0 && c.took[len(c.took)-1] > limit:
		w.report(Converged, want+" within "+limit.String(),
			"the last event after "+roundDuration(c.took[len(c.took)-1]))
	}
}

// progress describes how far the watcher got.
func (v *verifier) progress() string {
	if !v.started || v.high == 0 {
		return "no event"
	}
	return "the last event was " + v.describe(v.high-1)
}
