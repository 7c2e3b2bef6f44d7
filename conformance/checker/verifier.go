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

	// The current session of the watcher.
	session        *Session
	sessionNumber  int
	next           int // the next expected position
	phase          phase
	initial        initialState      // the initial events so far
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

// An initialState holds the objects, and the deleted keys, of the initial events.
type initialState struct {
	items []Item
	gone  []Key
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
	violation           Violation // reported if a position is missing
	startsWithinVersion bool      // the gap starts within a transaction
}

func (g *gap) contains(position int) bool {
	return position >= g.from && position < g.to && !g.late[position]
}

// run verifies all sessions of a watcher, given by their numbers.
func (v *verifier) run(numbers []int) {
	for _, n := range numbers {
		v.beginSession(n)
		for i := range v.session.Events {
			v.eventIndex = i
			v.verifyEvent(&v.session.Events[i])
		}
		v.eventIndex = -1
		v.endSession()
	}
	v.reportGaps()
	v.convergence.finish(v)
}

func (v *verifier) beginSession(number int) {
	v.sessionNumber, v.session = number, v.check.history.Sessions[number]
	v.phase, v.initial, v.initialVersion, v.atStart = opening, initialState{}, 0, true
	v.lastChange, v.lastBookmark = 0, 0
	v.seenBefore, v.firstPosition = v.newestSeen, 0
}

// begin starts the verification of a session. It is called at the first event. If a session has a
// known starting point but no events, begin is called at its end.
func (v *verifier) begin() {
	request := v.session.Request
	switch {
	case request.InitialEvents:
		v.reportGaps()
		v.phase = initial
		return
	case request.Version != 0:
		v.resume(request.Version)
		v.check.verifyServedBelowFloor(v)
	default:
		v.reportGaps()
		v.next = v.projection.firstAfter(v.newestAcknowledged())
		v.high, v.started = v.next, true
	}
	v.phase = following
}

// resume sets the expected position of a session that starts after a version.
func (v *verifier) resume(at listwatch.Version) {
	v.next = v.projection.firstAfter(at)
	switch {
	case !v.started || v.listed[at]:
		v.reportGaps()
		v.high = v.next
	case v.next > v.high:
		// The request skips events that the watcher has not received. They may still
		// arrive late.
		v.openGap(v.high, v.next, Resumable, fmt.Sprintf("a session that resumes after version %d", at))
		v.high = v.next
	}
	v.started = true
}

// newestAcknowledged returns the version that a watch from the newest state must include.
func (v *verifier) newestAcknowledged() listwatch.Version {
	return v.check.writes.acked.before(v.session.Opened)
}

func (v *verifier) verifyEvent(e *ReceivedEvent) {
	if v.phase == opening {
		v.begin()
	}
	if v.phase == initial && !v.session.Request.Bookmarks && !e.Initial {
		v.endInitialWithoutBookmark(e)
	}
	switch {
	case e.Type == Synced:
		v.verifySynced(e)
	case v.phase == initial:
		v.verifyInitial(e)
	case e.Type == Bookmark:
		v.verifyBookmark(e)
	default:
		v.verifyChange(e)
	}
	v.convergence.update(v, e.ReceivedAt)
}

// verifyChange verifies an event after the initial events.
func (v *verifier) verifyChange(e *ReceivedEvent) {
	v.check.summary.Events++
	v.newestSeen = max(v.newestSeen, e.Version)
	position := v.match(e)
	if position < 0 {
		return
	}
	v.adjustStart(position)
	switch {
	case position > v.next:
		v.openGap(v.next, position, Reliable, describe(e))
		fallthrough
	case position == v.next:
		v.next = position + 1
		if position < v.high && !v.fillGap(position, e) {
			v.report(Unique, "no event that was received before", describe(e))
		}
	default:
		v.verifyOldEvent(position, e)
	}
	v.high = max(v.high, v.next)
	v.lastChange, v.atStart = max(v.lastChange, e.Version), false
}

// match compares e with the write that caused it. It returns the position of the expected
// event, or a negative number if no write caused e.
func (v *verifier) match(e *ReceivedEvent) int {
	write, others := v.check.writes.find(e.Version, e.Key)
	switch {
	case write < 0 && others == 1:
		// The version has only one write, so the event is for that write and has a wrong key.
		from, _ := v.check.writes.indexRange(e.Version)
		position := int(v.projection.positions[from]) - 1
		v.report(ContentExact, "key "+v.check.writes.all[from].Key.String(), describe(e))
		return position
	case write < 0 && others > 0:
		v.report(ContentExact, "the key of a write of that version", describe(e))
		return -1
	case write < 0:
		v.report(NoPhantom, "no event: no write has that version", describe(e))
		return -1
	}
	if began := v.check.writes.all[write].Began; e.ReceivedAt != 0 && e.ReceivedAt < began {
		v.report(NoPhantom, fmt.Sprintf("no event before the write was requested at %v", began), describe(e))
	}
	position := int(v.projection.positions[write]) - 1
	if position < 0 {
		v.report(NoPhantom, "no event: that write does not concern the selection", describe(e))
		return -1
	}
	want, payload := v.projection.events[position].eventType, v.projection.fingerprintAt(position)
	if e.Type != want || payload != 0 && e.Fingerprint != 0 && e.Fingerprint != payload {
		v.report(ContentExact, v.describe(position), describe(e))
	}
	return position
}

// adjustStart moves the expected position to the first event of a watch without initial events. A
// watch from the newest version may start at any write between its request and its response, and a
// watch whose request accepts any version may start anywhere.
func (v *verifier) adjustStart(position int) {
	a := v.session.Request
	if !v.atStart || a.InitialEvents || a.Version != 0 {
		return
	}
	if a.AnyVersion {
		v.next, v.high = position, position
	}
	for v.next < position && v.check.writes.all[v.projection.events[v.next].write].Began <= v.session.Ready {
		v.next++
	}
	v.high = max(v.high, v.next)
	v.firstPosition = v.next
}

// verifyOldEvent verifies an event at a position that the session has already passed.
func (v *verifier) verifyOldEvent(position int, e *ReceivedEvent) {
	got := describe(e)
	switch {
	case v.fillGap(position, e):
	case e.Version <= v.session.Request.Version && !v.session.Request.InitialEvents:
		v.report(Resumable, fmt.Sprintf("no event up to version %d, the requested version", v.session.Request.Version),
			got)
	case e.Version <= v.initialVersion:
		v.report(Bookmarkable,
			fmt.Sprintf("no event up to version %d, the version of the initial events", v.initialVersion), got)
	case position < v.firstPosition:
		v.report(v.guaranteeForLate(e, false), "no event older than the first event of the session", got)
	default:
		v.report(Unique, "no event that was received before", got)
	}
}

// fillGap removes a position from its gap and reports the late event e. It returns false if the
// position is in no gap.
func (v *verifier) fillGap(position int, e *ReceivedEvent) bool {
	for _, g := range v.gaps {
		if !g.contains(position) {
			continue
		}
		if g.late == nil {
			g.late = make(map[int]bool)
		}
		g.late[position] = true
		v.report(v.guaranteeForLate(e, g.startsWithinVersion), v.describe(position)+" at its position",
			describe(e)+fmt.Sprintf(", after version %d", max(v.lastChange, v.lastBookmark)))
		return true
	}
	return false
}

// guaranteeForLate returns the guarantee that a late event e breaks. withinVersion reports whether
// another event of e's transaction arrived before e.
func (v *verifier) guaranteeForLate(e *ReceivedEvent, withinVersion bool) Guarantee {
	switch {
	case withinVersion || e.Version == v.lastChange:
		return Atomic
	case e.Version <= v.lastBookmark:
		return Bookmarkable
	}
	return Ordered
}

// openGap records that the positions p with from <= p < to were skipped. got describes the event or
// bookmark that arrived instead.
func (v *verifier) openGap(from, to int, guarantee Guarantee, got string) {
	if request := v.session.Request; guarantee == Reliable && v.atStart &&
		request.Version != 0 && !request.InitialEvents {
		guarantee = Resumable
		if v.check.startsBelowFloor(v.session) {
			guarantee = ExpiryJustified
		}
	}
	g := &gap{
		from: from, to: to, violation: v.violation(guarantee, "", got),
		startsWithinVersion: v.projection.versionAt(from) == v.lastChange,
	}
	v.gaps = append(v.gaps, g)
}

// reportGaps reports the missing positions of all gaps.
func (v *verifier) reportGaps() {
	for _, g := range v.gaps {
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
		found := g.violation
		found.Want = v.describe(first)
		if missing > 1 {
			found.Want += fmt.Sprintf(" and %d more", missing-1)
		}
		v.check.add(found)
	}
	v.gaps = nil
}

func (v *verifier) endSession() {
	s := v.session
	switch {
	case s.End.Expired:
	case v.phase == opening && v.listed[s.Request.Version]:
		v.begin() // no events arrived, but the list provided a state
	case s.End.Error != "" && s.End.Error != cleanEnd:
	case v.phase == opening && s.Request.Version == 0 && !s.Request.InitialEvents:
		v.begin() // the session had no event; it started at the newest version
	case v.phase != following && s.Request.InitialEvents && !s.Request.Bookmarks:
		// Without bookmarks, the watcher cannot know whether the initial state is complete.
		// Assume that it is.
		v.high, v.started, v.phase = max(v.high, v.projection.firstAfter(v.newestAcknowledged())), true, following
	}
	v.convergence.update(v, max(s.Opened, s.Ready))
	if v.session.End.Expired {
		v.check.verifyExpired(v)
	}
}

// describe describes the expected event at position n.
func (v *verifier) describe(n int) string {
	s := v.projection.events[n]
	write := &v.check.writes.all[s.write]
	return describeEvent(s.eventType, write.Key, write.Version, v.projection.fingerprintAt(n))
}

func (v *verifier) report(r Guarantee, want, got string) { v.check.add(v.violation(r, want, got)) }

func (v *verifier) violation(r Guarantee, want, got string) Violation {
	found := Violation{
		Guarantee: r, Watcher: v.session.Watcher, Session: v.sessionNumber, Transport: v.session.Transport,
		Event: v.eventIndex, Want: want, Got: got,
	}
	if v.eventIndex >= 0 {
		found.At = v.session.Events[v.eventIndex].ReceivedAt
	}
	return found
}
