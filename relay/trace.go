package relay

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/persist"
)

// A Trace has hooks for events that the readers of a Relay do not see. Each hook may be nil.
// Hooks are called from the Relay's goroutines and must return quickly.
type Trace struct {
	// Replaced is called when the relay has adopted a state: the first state, or a state that ended
	// every watch with [listwatch.Expired]. why is the reason for which the relay received the
	// whole state: "first"; "declined" if the upstream could not send the difference to the state
	// of the relay; "unsupported" if the upstream sends no differences; "doubted" if an event did
	// not fit the state of the relay, or the upstream has an older state. If the state comes from
	// [Options.Persist], why is "saved".
	Replaced func(version listwatch.Version, objects int, why string)
	// Patched is called when the relay has adopted a state of which the upstream has sent only the
	// difference to the state at version since. It has ended every watch, too; a reader that
	// supports differences then receives one.
	Patched func(since, version listwatch.Version)
	// UpstreamLost is called when the watch of the upstream has ended or could not be opened. err
	// is io.EOF if the upstream ended it cleanly. The next attempt starts after wait, and requests
	// the state again if relist is true.
	UpstreamLost func(err error, wait time.Duration, relist bool)
	// Checked is called after each check of [Options.CheckInterval].
	Checked func(Health)
	// Probed is called when several probes in a row have failed, with the reason, and when a probe
	// succeeds again, with nil; see [Relay.ProbeErr].
	Probed func(err error)
	// Saved is called when the copy of [Options.Persist] was saved or removed, or could not be.
	Saved func(persist.Saved)
}
