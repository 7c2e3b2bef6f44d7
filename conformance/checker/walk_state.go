package checker

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// initial judges a frame of the initial events. Their versions are in no order, and whether they are all there is known when they end.
func (w *walk) initial(f *ReceivedEvent) {
	if f.Type == Bookmark {
		w.report(Bookmarkable, "no bookmark before the initial events have ended", describeFrame(f))
		return
	}
	w.check.summary.Events++
	it := Item{f.Key, f.Version, f.Fingerprint}
	if from, to := w.check.ledger.at(f.Version); to-from == 1 {
		it.Key = w.check.ledger.writes[from].Key // what bears another key is reported once, and not as missing too
	}
	rule, want := w.check.item(w.p, it)
	if rule == 0 && it.Key != f.Key {
		rule, want = ContentExact, "key "+it.Key.String()
	}
	if rule == 0 && f.Type != Added {
		rule, want = ContentExact, "ADDED, or the end of the initial events"
	}
	if rule != 0 {
		w.report(rule, want, describeFrame(f))
	}
	if rule != NoPhantom {
		w.state = append(w.state, it)
	}
}

// synced ends the initial events.
func (w *walk) synced(f *ReceivedEvent) {
	w.check.summary.Bookmarks++
	if w.phase != initial {
		w.report(SnapshotExact, "no end of initial events, as there are none or they have ended", describeFrame(f))
		return
	}
	w.judgeMark(f)
	w.endInitial(f.Version, describeFrame(f))
	w.mark = f.Version
}

// endUnmarked ends the initial events of a watch without bookmarks at its first change, which is after the state: whatever happened
// between the two did not concern the selection.
func (w *walk) endUnmarked(f *ReceivedEvent) {
	w.endInitial(f.Version-1, "a state that ends before "+describeFrame(f))
}

func (w *walk) endInitial(v listwatch.Version, got string) {
	w.phase = following
	asked := w.session.Request
	fresh, why := asked.Version, "which was asked for"
	if asked.Version == 0 && !asked.AnyVersion {
		if fresh, why = w.freshest(), "which was acknowledged before the request"; w.before > fresh {
			fresh, why = w.before, "which the watcher had seen before"
		}
	}
	if v < fresh {
		w.report(Fresh, fmt.Sprintf("a state not older than version %d, %s", fresh, why), got)
	}
	w.check.claims = append(w.check.claims, claim{
		version: v, p: w.p, items: w.state, rule: SnapshotExact, where: w.violation(SnapshotExact, "", got),
	})
	w.check.summary.Snapshots++
	w.state = nil
	w.base = v
	w.seen = max(w.seen, v)
	w.next = w.p.after(v)
	w.high, w.started = w.next, true
}

// bookmark judges a bookmark of the phase following.
func (w *walk) bookmark(f *ReceivedEvent) {
	w.check.summary.Bookmarks++
	got := describeFrame(f)
	if !w.session.Request.Bookmarks {
		w.report(Bookmarkable, "no bookmark, as none was asked for", got)
	}
	least := max(w.mark, w.last, w.base)
	if !w.session.Request.InitialEvents {
		least = max(least, w.session.Request.Version)
	}
	if f.Version < least {
		w.report(Bookmarkable, fmt.Sprintf("a bookmark not before version %d", least), got)
		return
	}
	if !w.judgeMark(f) {
		return
	}
	if to := w.p.after(f.Version); to > w.next {
		if w.forgive(to); to > w.next {
			w.skip(w.next, to, Reliable, got)
		}
		w.next = to
		w.high = max(w.high, to)
	}
	w.mark, w.virgin = f.Version, false
	w.seen = max(w.seen, f.Version)
}

// judgeMark reports a bookmark of a version that nobody can have written by then.
func (w *walk) judgeMark(f *ReceivedEvent) bool {
	if w.check.history.Meta.SharedVersions {
		return true
	}
	most := w.check.ledger.newest()
	if f.ReceivedAt != 0 {
		most = w.check.ledger.begun.by(f.ReceivedAt)
	}
	if f.Version <= max(most, w.check.history.Meta.Base) {
		return true
	}
	w.report(Bookmarkable, fmt.Sprintf("a version up to %d: no later write had begun", most), describeFrame(f))
	return false
}
