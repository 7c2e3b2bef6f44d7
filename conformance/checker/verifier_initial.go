package checker

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// verifyInitial verifies an initial event. Initial events are not ordered by version. Whether
// they are complete is verified when they end.
func (v *verifier) verifyInitial(e *ReceivedEvent) {
	if e.Type == Bookmark {
		v.report(Bookmarkable, "no bookmark before the end of the initial events", describe(e))
		return
	}
	v.check.summary.Events++
	if e.Type == Deleted && v.session.Request.Since != 0 {
		v.verifyGone(e)
		return
	}
	it := Item{e.Key, e.Version, e.Fingerprint}
	if from, to := v.check.writes.indexRange(e.Version); to-from == 1 {
		// If only one write has this version, use its key. A wrong key in the event is reported
		// below, and the object should not be reported as missing, too.
		it.Key = v.check.writes.all[from].Key
	}
	guarantee, want := v.check.verifyItem(v.projection, it)
	if guarantee == 0 && it.Key != e.Key {
		guarantee, want = ContentExact, "key "+it.Key.String()
	}
	if guarantee == 0 && e.Type != Added {
		guarantee, want = ContentExact, "ADDED or the end of the initial events"
	}
	if guarantee != 0 {
		v.report(guarantee, want, describe(e))
	}
	if guarantee != NoPhantom {
		v.initial.items = append(v.initial.items, it)
	}
}

// verifySynced verifies the bookmark that ends the initial events.
func (v *verifier) verifySynced(e *ReceivedEvent) {
	v.check.summary.Bookmarks++
	if v.phase != initial {
		v.report(SnapshotExact, "no end of initial events: there are none, or they have already ended", describe(e))
		return
	}
	v.verifyBookmarkVersion(e)
	v.applyDifference(e)
	v.endInitial(e.Version, describe(e))
	v.lastBookmark = e.Version
}

// verifyGone verifies a DELETED event of a difference. The version of the event is not checked.
func (v *verifier) verifyGone(e *ReceivedEvent) {
	if since := v.session.Request.Since; !v.projection.hadSince(e.Key, since) {
		v.report(NoPhantom, fmt.Sprintf("no DELETED: the selection has not had the object since version %d", since),
			describe(e))
		return
	}
	v.initial.gone = append(v.initial.gone, e.Key)
}

// applyDifference is called at e, the end of the initial events. If these are a difference, it adds
// the unchanged objects, so that v.initial holds the whole state.
func (v *verifier) applyDifference(e *ReceivedEvent) {
	want := v.session.Request.Since
	if e.Since == 0 && len(v.initial.gone) > 0 || e.Since != 0 && e.Since != want {
		v.report(SnapshotExact, fmt.Sprintf("a whole state, or the difference since version %d", want), describe(e))
	}
	if e.Since == 0 {
		return
	}
	changed := make(map[Key]bool)
	for _, it := range v.initial.items {
		changed[it.Key] = true
	}
	for _, key := range v.initial.gone {
		changed[key] = true
	}
	for key, version := range v.projection.stateAt(e.Since) {
		if !changed[key] {
			v.initial.items = append(v.initial.items, Item{Key: key, Version: version})
		}
	}
}

// endInitialWithoutBookmark ends the initial events at the first change, for a watch
// without bookmarks. No write between the initial state and that change concerns the
// selection, so the version just before the change stands for the initial state.
func (v *verifier) endInitialWithoutBookmark(e *ReceivedEvent) {
	v.endInitial(e.Version-1, "a state that ends before "+describe(e))
}

func (v *verifier) endInitial(at listwatch.Version, got string) {
	v.phase = following
	request := v.session.Request
	fresh, why := request.Version, "the requested version"
	if request.Version == 0 && !request.AnyVersion {
		if fresh, why = v.newestAcknowledged(), "which was acknowledged before the request"; v.seenBefore > fresh {
			fresh, why = v.seenBefore, "which the watcher had seen before"
		}
	}
	if at < fresh {
		v.report(Fresh, fmt.Sprintf("a state not older than version %d, %s", fresh, why), got)
	}
	v.check.states = append(v.check.states, observedState{
		version: at, projection: v.projection, items: v.initial.items, guarantee: SnapshotExact,
		violation: v.violation(SnapshotExact, "", got),
	})
	v.check.summary.Snapshots++
	v.initial = initialState{}
	v.initialVersion = at
	v.newestSeen = max(v.newestSeen, at)
	v.next = v.projection.firstAfter(at)
	v.high, v.started = v.next, true
}

// verifyBookmark verifies a bookmark after the initial events.
func (v *verifier) verifyBookmark(e *ReceivedEvent) {
	v.check.summary.Bookmarks++
	got := describe(e)
	if !v.session.Request.Bookmarks {
		v.report(Bookmarkable, "no bookmark, because none was requested", got)
	}
	least := max(v.lastBookmark, v.lastChange, v.initialVersion)
	if !v.session.Request.InitialEvents {
		least = max(least, v.session.Request.Version)
	}
	if e.Version < least {
		v.report(Bookmarkable, fmt.Sprintf("a bookmark of at least version %d", least), got)
		return
	}
	if !v.verifyBookmarkVersion(e) {
		return
	}
	if to := v.projection.firstAfter(e.Version); to > v.next {
		if v.adjustStart(to); to > v.next {
			v.openGap(v.next, to, Reliable, got)
		}
		v.next = to
		v.high = max(v.high, to)
	}
	v.lastBookmark, v.atStart = e.Version, false
	v.newestSeen = max(v.newestSeen, e.Version)
}

// verifyBookmarkVersion reports a bookmark whose version is newer than every write that had started
// when the bookmark was received. In that case it returns false.
func (v *verifier) verifyBookmarkVersion(e *ReceivedEvent) bool {
	if v.check.history.Meta.SharedVersions {
		return true
	}
	most := v.check.writes.newest()
	if e.ReceivedAt != 0 {
		most = v.check.writes.started.upTo(e.ReceivedAt)
	}
	if e.Version <= max(most, v.check.history.Meta.Base) {
		return true
	}
	v.report(Bookmarkable, fmt.Sprintf("at most version %d: no later write had been requested", most), describe(e))
	return false
}
