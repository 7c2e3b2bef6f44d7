package checker

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// A verifier compares the sessions of one watcher with its projection, event by event.
type verifier struct {
	// Immutable after construction.
	check      *checker
	projection *projection

	// The progress of the watcher. Every position of the projection below high was delivered, is in
	// a gap, or precedes the watcher's first state.
	high       int
	started    bool              // high is valid
	newestSeen listwatch.Version // the newest version that the watcher has seen
	listed     map[listwatch.Version]bool
	gaps       []*gap

	// The current session.
	session        *Session
	sessionNumber  int
	next           int // the next expected position
	phase          phase
	initialItems   []Item            // the initial events so far
	lastChange     listwatch.Version // version of the last change
	lastBookmark   listwatch.Version // version of the last bookmark
	atStart        bool              // no change or bookmark was received yet
	initialVersion listwatch.Version // version of the initial state
	// firstPosition is the first expected position of a watch that starts at the newest version and
	// has no initial events.
	firstPosition int
	seenBefore    listwatch.Version // newestSeen at the start of the session
	eventIndex    int               // index of the current event

	convergence convergence
}

// A phase is the phase of a session.
type phase uint8

const (
	opening   phase = iota // nothing was received yet
	initial                // receiving initial events
	following              // receiving changes
)

// A gap is a range of positions that were skipped. A late event removes its position from
// the gap. The remaining positions are missing.
type gap struct {
	from, to            int
	late                map[int]bool
	violation           Violation // what to report if a position is missing
	startsWithinVersion bool      // the gap starts within a transaction
}

func (g *gap) contains(position int) bool {
	return position >= g.from && position < g.to && !g.late[position]
}

// run verifies all sessions of a watcher, given by their numbers.
func (w *verifier) run(numbers []int) {
	for _, n := range numbers {
		w.beginSession(n)
		for i := range w.session.Events {
			w.eventIndex = i
			w.verifyEvent(&w.session.Events[i])
		}
		w.eventIndex = -1
		w.endSession()
	}
	w.reportGaps()
	w.convergence.finish(w)
}

func (w *verifier) beginSession(number int) {
	w.sessionNumber, w.session = number, w.check.history.Sessions[number]
	w.phase, w.initialItems, w.lastChange, w.lastBookmark, w.initialVersion, w.atStart = opening, nil, 0, 0, 0, true
	w.seenBefore, w.firstPosition = w.newestSeen, 0
}

// begin starts the verification of a session: at the first event, or, if the session has a known
// starting point but no events, when it ends.
func (w *verifier) begin() {
	request := w.session.Request
	switch {
	case request.InitialEvents:
		w.reportGaps()
		w.phase = initial
		return
	case request.Version != 0:
		w.resume(request.Version)
		w.check.verifyServedBelowFloor(w)
	default:
		w.reportGaps()
		w.next = w.projection.firstAfter(w.newestAcknowledged())
		w.high, w.started = w.next, true
	}
	w.phase = following
}

// resume sets the expected position of a session that starts after a version.
func (w *verifier) resume(at listwatch.Version) {
	w.next = w.projection.firstAfter(at)
	switch {
	case !w.started || w.listed[at]:
		w.reportGaps()
		w.high = w.next
	case w.next > w.high:
		// The request skips events that the watcher has not received. They may still
		// arrive late.
		w.openGap(w.high, w.next, Resumable, fmt.Sprintf("a session that resumes after version %d", at))
		w.high = w.next
	}
	w.started = true
}

// newestAcknowledged returns the version that a watch from the newest state must include.
func (w *verifier) newestAcknowledged() listwatch.Version {
	return w.check.writes.acked.before(w.session.Opened)
}

func (w *verifier) verifyEvent(e *ReceivedEvent) {
	if w.phase == opening {
		w.begin()
	}
	if w.phase == initial && !w.session.Request.Bookmarks && !e.Initial {
		w.endInitialWithoutBookmark(e)
	}
	switch {
	case e.Type == Synced:
		w.verifySynced(e)
	case w.phase == initial:
		w.verifyInitial(e)
	case e.Type == Bookmark:
		w.verifyBookmark(e)
	default:
		w.verifyChange(e)
	}
	w.convergence.update(w, e.ReceivedAt)
}

// verifyChange verifies an event after the initial events.
func (w *verifier) verifyChange(e *ReceivedEvent) {
	w.check.summary.Events++
	w.newestSeen = max(w.newestSeen, e.Version)
	position := w.match(e)
	if position < 0 {
		return
	}
	w.adjustStart(position)
	switch {
	case position > w.next:
		w.openGap(w.next, position, Reliable, describe(e))
		fallthrough
	case position == w.next:
		w.next = position + 1
		if position < w.high && !w.fillGap(position, e) {
			w.report(Unique, "no event that was received before", describe(e))
		}
	default:
		w.verifyOldEvent(position, e)
	}
	w.high = max(w.high, w.next)
	w.lastChange, w.atStart = max(w.lastChange, e.Version), false
}

// match compares e with the write that caused it. It returns the position of the expected
// event, or a negative number if no write caused e.
func (w *verifier) match(e *ReceivedEvent) int {
	write, others := w.check.writes.find(e.Version, e.Key)
	switch {
	case write < 0 && others == 1:
		// The version has only one write, so the event is for that write and has a wrong key.
		from, _ := w.check.writes.indexRange(e.Version)
		position := int(w.projection.positions[from]) - 1
		w.report(ContentExact, "key "+w.check.writes.all[from].Key.String(), describe(e))
		return position
	case write < 0 && others > 0:
		w.report(ContentExact, "the key of a write of that version", describe(e))
		return -1
	case write < 0:
		w.report(NoPhantom, "no event: no write has that version", describe(e))
		return -1
	}
	if began := w.check.writes.all[write].Began; e.ReceivedAt != 0 && e.ReceivedAt < began {
		w.report(NoPhantom, fmt.Sprintf("no event before the write was requested at %v", began), describe(e))
	}
	position := int(w.projection.positions[write]) - 1
	if position < 0 {
		w.report(NoPhantom, "no event: that write does not concern the selection", describe(e))
		return -1
	}
	want, payload := w.projection.events[position].eventType, w.projection.fingerprintAt(position)
	if e.Type != want || payload != 0 && e.Fingerprint != 0 && e.Fingerprint != payload {
		w.report(ContentExact, w.describe(position), describe(e))
	}
	return position
}

// adjustStart moves the expected position to the first event of a watch without initial events. A
// watch from the newest version may start at any write between its request and its response, and a
// watch whose request accepts any version may start anywhere.
func (w *verifier) adjustStart(position int) {
	a := w.session.Request
	if !w.atStart || a.InitialEvents || a.Version != 0 {
		return
	}
	if a.AnyVersion {
		w.next, w.high = position, position
	}
	for w.next < position && w.check.writes.all[w.projection.events[w.next].write].Began <= w.session.Ready {
		w.next++
	}
	w.high = max(w.high, w.next)
	w.firstPosition = w.next
}

// verifyOldEvent verifies an event at a position that the session has already passed.
func (w *verifier) verifyOldEvent(position int, e *ReceivedEvent) {
	got := describe(e)
	switch {
	case w.fillGap(position, e):
	case e.Version <= w.session.Request.Version && !w.session.Request.InitialEvents:
		w.report(Resumable, fmt.Sprintf("no event up to version %d, the requested version", w.session.Request.Version), got)
	case e.Version <= w.initialVersion:
		w.report(Bookmarkable, fmt.Sprintf("no event up to version %d, the version of the initial events", w.initialVersion), got)
	case position < w.firstPosition:
		w.report(w.guaranteeForLate(e, false), "no event older than the first event of the session", got)
	default:
		w.report(Unique, "no event that was received before", got)
	}
}

// fillGap removes a position from its gap and reports the late event e. It returns false if the
// position is in no gap.
func (w *verifier) fillGap(position int, e *ReceivedEvent) bool {
	for _, g := range w.gaps {
		if !g.contains(position) {
			continue
		}
		if g.late == nil {
			g.late = make(map[int]bool)
		}
		g.late[position] = true
		w.report(w.guaranteeForLate(e, g.startsWithinVersion), w.describe(position)+" at its position", describe(e)+fmt.Sprintf(", after version %d", max(w.lastChange, w.lastBookmark)))
		return true
	}
	return false
}

// guaranteeForLate returns the guarantee that a late event e breaks. withinVersion reports
// that e belongs to a transaction of which an event had already arrived.
func (w *verifier) guaranteeForLate(e *ReceivedEvent, withinVersion bool) Guarantee {
	switch {
	case withinVersion || e.Version == w.lastChange:
		return Atomic
	case e.Version <= w.lastBookmark:
		return Bookmarkable
	}
	return Ordered
}

// openGap records that the positions p with from <= p < to were skipped. got describes the event or
// bookmark that arrived instead.
func (w *verifier) openGap(from, to int, guarantee Guarantee, got string) {
	if request := w.session.Request; guarantee == Reliable && w.atStart && request.Version != 0 && !request.InitialEvents {
		guarantee = Resumable
		if w.check.startsBelowFloor(w.session) {
			guarantee = ExpiryJustified
		}
	}
	g := &gap{from: from, to: to, violation: w.violation(guarantee, "", got), startsWithinVersion: w.projection.versionAt(from) == w.lastChange}
	w.gaps = append(w.gaps, g)
}

// reportGaps reports the missing positions of all gaps.
func (w *verifier) reportGaps() {
	for _, g := range w.gaps {
		first, missing := -1, 0
		for position := g.from; position < g.to; position++ {
			if g.late[position] {
				continue
			}
			if missing++; first < 0 {
				first = position
			}
		}
		if missing == 0 {
			continue
		}
		v := g.violation
		v.Want = w.describe(first)
		if missing > 1 {
			v.Want += fmt.Sprintf(" and %d more", missing-1)
		}
		w.check.add(v)
	}
	w.gaps = nil
}

func (w *verifier) endSession() {
	s := w.session
	switch {
	case s.End.Expired:
	case w.phase == opening && w.listed[s.Request.Version]:
		w.begin() // no events arrived, but the list provided a state
	case s.End.Error != "" && s.End.Error != cleanEnd:
	case w.phase == opening && s.Request.Version == 0 && !s.Request.InitialEvents:
		w.begin() // the session had no event; it started at the newest version
	case w.phase != following && s.Request.InitialEvents && !s.Request.Bookmarks:
		// Without bookmarks, the watcher cannot know whether the initial state is complete.
		// Assume that it is.
		w.high, w.started, w.phase = max(w.high, w.projection.firstAfter(w.newestAcknowledged())), true, following
	}
	w.convergence.update(w, max(s.Opened, s.Ready))
	if w.session.End.Expired {
		w.check.verifyExpired(w)
	}
}

// describe describes the expected event at position n.
func (w *verifier) describe(n int) string {
	s := w.projection.events[n]
	write := &w.check.writes.all[s.write]
	return describeEvent(s.eventType, write.Key, write.Version, w.projection.fingerprintAt(n))
}
