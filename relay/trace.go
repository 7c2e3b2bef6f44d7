package relay

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace has hooks for events that the readers of a Relay do not see. Each hook may be nil.
// Hooks are called from the Relay's goroutines and must return quickly.
type Trace struct {
	// Replaced is called when the relay has adopted a state of the upstream: the first state, or
	// a state that ended every watch with [listwatch.Expired].
	Replaced func(version listwatch.Version, objects int)
	// UpstreamLost is called when the watch of the upstream has ended or could not be opened. err
	// is io.EOF if the upstream ended it cleanly. The next attempt starts after wait, and requests
	// the state again if relist is true.
	UpstreamLost func(err error, wait time.Duration, relist bool)
	// Checked is called after each check of [Options.CheckInterval].
	Checked func(Health)
}

func (t *Trace) replaced(v listwatch.Version, objects int) {
	if t != nil && t.Replaced != nil {
		t.Replaced(v, objects)
	}
}

func (t *Trace) upstreamLost(err error, wait time.Duration, relist bool) {
	if t != nil && t.UpstreamLost != nil {
		t.UpstreamLost(err, wait, relist)
	}
}

func (t *Trace) checked(h Health) {
	if t != nil && t.Checked != nil {
		t.Checked(h)
	}
}
