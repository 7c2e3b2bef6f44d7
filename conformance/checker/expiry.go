package checker

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// startsBelowFloor reports whether the history that s needs had certainly been compacted when
// s was opened.
func (c *checker) startsBelowFloor(s *Session) bool {
	return s.Request.Version < c.certainFloor.before(s.Opened)
}

// verifyServedBelowFloor reports a session that received events although a compaction had dropped
// the history that it needed. It does so only if Meta.MustExpire requires that such a session ends
// with Expired.
func (c *checker) verifyServedBelowFloor(w *verifier) {
	if c.history.Meta.MustExpire && w.eventIndex >= 0 && c.startsBelowFloor(w.session) {
		w.report(ExpiryJustified, fmt.Sprintf("Expired, because the history before version %d was discarded",
			c.certainFloor.before(w.session.Opened)),
			fmt.Sprintf("events after version %d", w.session.Request.Version))
	}
}

// verifyExpired verifies a session that ended with Expired: the highest possible floor must
// be above the session's position.
func (c *checker) verifyExpired(w *verifier) {
	s := w.session
	if !c.history.Meta.AllCompactionsRecorded {
		return
	}
	if w.phase != following && s.Request.InitialEvents && !s.End.Remote {
		return // the client itself returns Expired if the initial events are interrupted
	}
	end := s.End.At
	if end == 0 {
		end = 1<<63 - 2
	}
	position, floor := w.serverPosition(), c.possibleFloor.upTo(end)
	if position >= floor {
		w.report(ExpiryJustified,
			fmt.Sprintf("no Expired, because the watch is at version %d and the history since version %d is available",
				position, floor), "Expired: "+s.End.Error)
	}
}

// serverPosition returns the newest version that the server has certainly sent on the
// session's last connection.
func (v *verifier) serverPosition() listwatch.Version {
	at := max(v.session.Request.Version, v.initialVersion, v.lastChange, v.lastBookmark)
	if at == 0 && !v.session.Request.AnyVersion {
		at = v.newestAcknowledged()
	}
	if n := len(v.session.Connections); n > 0 && v.session.Connections[n-1].From != 0 {
		// The watcher may have received later versions. For this connection, only From is certain,
		// the version from which the client resumed.
		at = min(at, v.session.Connections[n-1].From)
	}
	return at
}
