package relay

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace is told what a relay does that its readers don't see. Each hook may be nil; it is called from a goroutine at work and must be quick.
type Trace struct {
	// Began says that the relay has a state of so many objects at version. The first time it is ready then; else all who watched before
	// are told that they expired.
	Replaced func(version listwatch.Version, objects int)
	// Lost says that the watch of the upstream has ended, or could not be opened, and that another is tried after wait; again, that the
	// state will be asked for anew. A client.Remote mends its streams by itself, and tells its own Trace.
	UpstreamLost func(err error, wait time.Duration, again bool)
	// Checked is told the status after each check of Options.Check.
	Checked func(Health)
}

func (t *Trace) began(v listwatch.Version, objects int) {
	if t != nil && t.Replaced != nil {
		t.Replaced(v, objects)
	}
}

func (t *Trace) lost(err error, wait time.Duration, again bool) {
	if t != nil && t.UpstreamLost != nil {
		t.UpstreamLost(err, wait, again)
	}
}

func (t *Trace) checked(r *Relay) {
	if t != nil && t.Checked != nil {
		t.Checked(r.Health())
	}
}
