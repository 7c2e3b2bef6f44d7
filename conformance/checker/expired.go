package checker

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// belowFloor reports whether the history that s asked for was certainly gone when it did.
func (c *checker) belowFloor(s *Session) bool { return s.Request.Version < c.gone.before(s.Opened) }

// forbidFloor reports a session that was served from below a floor, where that is forbidden.
func (c *checker) forbidFloor(w *walk) {
	if c.history.Meta.MustExpire && w.frame >= 0 && c.belowFloor(w.session) {
		w.report(ExpiryJustified, fmt.Sprintf("Expired: history before version %d was gone", c.gone.before(w.session.Opened)),
			fmt.Sprintf("events after version %d", w.session.Request.Version))
	}
}

// expired judges the end of a session that was told that the history is gone: some floor must have been above its position.
func (c *checker) expired(w *walk) {
	s := w.session
	if !c.history.Meta.AllCompactionsRecorded {
		return
	}
	if w.phase != following && s.Request.InitialEvents && !s.End.Remote {
		return // the client itself: a state that was cut off can't be completed
	}
	end := s.End.At
	if end == 0 {
		end = 1<<63 - 2
	}
	position, floor := w.position(), c.maybeGone.by(end)
	if position >= floor {
		w.report(ExpiryJustified, fmt.Sprintf("no Expired: the watch is at version %d, and the history since version %d is there", position, floor), "Expired: "+s.End.Error)
	}
}

// position returns a version that the server has certainly come to with the last stream of the session.
func (w *walk) position() listwatch.Version {
	at := max(w.session.Request.Version, w.base, w.last, w.mark)
	if at == 0 && !w.session.Request.AnyVersion {
		at = w.freshest()
	}
	if n := len(w.session.Connections); n > 0 && w.session.Connections[n-1].From != 0 {
		// The client may have asked for what follows an earlier version than its reader has seen.
		at = min(at, w.session.Connections[n-1].From)
	}
	return at
}

// goals is when a watcher came to the newest version of each heal.
type goals struct {
	heals   []Heal
	targets []int // by heal: the steps that it is to have
	done    int   // how many are reached
	took    []time.Duration
}

func newGoals(h *History, p *projection) goals {
	g := goals{heals: h.Heals}
	for _, heal := range h.Heals {
		g.targets = append(g.targets, p.after(heal.Version))
	}
	return g
}

// reached takes down that the watcher is where it is at a time.
func (g *goals) reached(w *walk, at time.Duration) {
	for w.phase == following && g.done < len(g.targets) && w.high >= g.targets[g.done] {
		g.took = append(g.took, max(0, at-g.heals[g.done].At))
		g.done++
	}
}

// finish reports a watcher that never came to the newest version of the last heal, or too late.
func (g *goals) finish(w *walk) {
	for g.done < len(g.targets) && g.targets[g.done] == 0 {
		g.took = append(g.took, 0)
		g.done++
	}
	w.check.summary.converged = append(w.check.summary.converged, g.took...)
	if len(g.heals) == 0 {
		return
	}
	last := g.heals[len(g.heals)-1]
	limit := w.check.history.Meta.ConvergenceTimeout
	want := fmt.Sprintf("everything up to version %d", last.Version)
	switch {
	case g.done < len(g.heals):
		due := g.targets[len(g.targets)-1] - 1
		w.report(Converged, want+": "+w.describe(due), w.progress())
	case limit > 0 && g.took[len(g.took)-1] > limit:
		w.report(Converged, want+" within "+limit.String(), "it after "+elapsed(g.took[len(g.took)-1]))
	}
}

// progress says how far the watcher is.
func (w *walk) progress() string {
	if !w.started || w.high == 0 {
		return "nothing of it"
	}
	return "the last event was " + w.describe(w.high-1)
}
