package checker

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// verifyInitial verifies an initial event. Initial events are not ordered by version. Whether
// they are complete is verified when they end.
func (w *verifier) verifyInitial(e *ReceivedEvent) {
	if e.Type == Bookmark {
		w.report(Bookmarkable, "no bookmark before the end of the initial events", describe(e))
		return
	}
	w.check.summary.Events++
	it := Item{e.Key, e.Version, e.Fingerprint}
	if from, to := w.check.writes.indexRange(e.Version); to-from == 1 {
		// If only one write has this version, use its key. A wrong key in the event is reported
		// below, and the object should not be reported as missing, too.
		it.Key = w.check.writes.all[from].Key
	}
	guarantee, want := w.check.verifyItem(w.projection, it)
	if guarantee == 0 && it.Key != e.Key {
		guarantee, want = ContentExact, "key "+it.Key.String()
	}
	if guarantee == 0 && e.Type != Added {
		guarantee, want = ContentExact, "ADDED or the end of the initial events"
	}
	if guarantee != 0 {
		w.report(guarantee, want, describe(e))
	}
	if guarantee != NoPhantom {
		w.initialItems = append(w.initialItems, it)
	}
}

// verifySynced verifies the bookmark that ends the initial events.
func (w *verifier) verifySynced(e *ReceivedEvent) {
	w.check.summary.Bookmarks++
	if w.phase != initial {
		w.report(SnapshotExact, "no end of initial events: there are none, or they have already ended", describe(e))
		return
	}
	w.verifyBookmarkVersion(e)
	w.endInitial(e.Version, describe(e))
	w.lastBookmark = e.Version
}

// endInitialWithoutBookmark ends the initial events at the first change, for a watch
// without bookmarks. No write between the initial state and that change concerns the
// selection, so the version just before the change stands for the initial state.
func (w *verifier) endInitialWithoutBookmark(e *ReceivedEvent) {
	w.endInitial(e.Version-1, "a state that ends before "+describe(e))
}

func (w *verifier) endInitial(v listwatch.Version, got string) {
	w.phase = following
	request := w.session.Request
	fresh, why := request.Version, "the requested version"
	if request.Version == 0 && !request.AnyVersion {
		if fresh, why = w.newestAcknowledged(), "which was acknowledged before the request"; w.seenBefore > fresh {
			fresh, why = w.seenBefore, "which the watcher had seen before"
		}
	}
	if v < fresh {
		w.report(Fresh, fmt.Sprintf("a state not older than version %d, %s", fresh, why), got)
	}
	w.check.states = append(w.check.states, observedState{
		version: v, projection: w.projection, items: w.initialItems, guarantee: SnapshotExact, violation: w.violation(SnapshotExact, "", got),
	})
	w.check.summary.Snapshots++
	w.initialItems = nil
	w.initialVersion = v
	w.newestSeen = max(w.newestSeen, v)
	w.next = w.projection.firstAfter(v)
	w.high, w.started = w.next, true
}

// verifyBookmark verifies a bookmark after the initial events.
func (w *verifier) verifyBookmark(e *ReceivedEvent) {
	w.check.summary.Bookmarks++
	got := describe(e)
	if !w.session.Request.Bookmarks {
		w.report(Bookmarkable, "no bookmark, because none was requested", got)
	}
	least := max(w.lastBookmark, w.lastChange, w.initialVersion)
	if !w.session.Request.InitialEvents {
		least = max(least, w.session.Request.Version)
	}
	if e.Version < least {
		w.report(Bookmarkable, fmt.Sprintf("a bookmark of at least version %d", least), got)
		return
	}
	if !w.verifyBookmarkVersion(e) {
		return
	}
	if to := w.projection.firstAfter(e.Version); to > w.next {
		if w.adjustStart(to); to > w.next {
			w.openGap(w.next, to, Reliable, got)
		}
		w.next = to
		w.high = max(w.high, to)
	}
	w.lastBookmark, w.atStart = e.Version, false
	w.newestSeen = max(w.newestSeen, e.Version)
}

// verifyBookmarkVersion reports a bookmark whose version is newer than every write that had started
// when the bookmark was received. In that case it returns false.
func (w *verifier) verifyBookmarkVersion(e *ReceivedEvent) bool {
	if w.check.history.Meta.SharedVersions {
		return true
	}
	most := w.check.writes.newest()
	if e.ReceivedAt != 0 {
		most = w.check.writes.started.upTo(e.ReceivedAt)
	}
	if e.Version <= max(most, w.check.history.Meta.Base) {
		return true
	}
	w.report(Bookmarkable, fmt.Sprintf("at most version %d: no later write had been requested", most), describe(e))
	return false
}
