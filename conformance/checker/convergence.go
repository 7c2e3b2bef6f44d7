package checker

import (
	"fmt"
	"time"
)

// A convergence tracks when a watcher reaches the version of each [Heal], which is the end of all
// faults.
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
func (g *convergence) update(w *verifier, at time.Duration) {
	for w.phase == following && g.reachedCount < len(g.targets) && w.high >= g.targets[g.reachedCount] {
		g.took = append(g.took, max(0, at-g.heals[g.reachedCount].At))
		g.reachedCount++
	}
}

// finish reports a watcher that reached the version of the last heal too late, or never.
func (g *convergence) finish(w *verifier) {
	for g.reachedCount < len(g.targets) && g.targets[g.reachedCount] == 0 {
		g.took = append(g.took, 0)
		g.reachedCount++
	}
	w.check.summary.converged = append(w.check.summary.converged, g.took...)
	if len(g.heals) == 0 {
		return
	}
	last := g.heals[len(g.heals)-1]
	limit := w.check.history.Meta.ConvergenceTimeout
	want := fmt.Sprintf("everything up to version %d", last.Version)
	switch {
	case g.reachedCount < len(g.heals):
		due := g.targets[len(g.targets)-1] - 1
		w.report(Converged, want+": "+w.describe(due), w.progress())
	case limit > 0 && g.took[len(g.took)-1] > limit:
		w.report(Converged, want+" within "+limit.String(), "the last event after "+roundDuration(g.took[len(g.took)-1]))
	}
}

// progress describes how far the watcher got.
func (w *verifier) progress() string {
	if !w.started || w.high == 0 {
		return "no event"
	}
	return "the last event was " + w.describe(w.high-1)
}
