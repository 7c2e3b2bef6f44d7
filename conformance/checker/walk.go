package checker

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// A walk takes one watcher along its projection, session by session, frame by frame.
type walk struct {
	// Immutable after construction.
	check *checker
	p     *projection

	// How far the watcher is.
	high    int               // every step before it has been delivered, is in a gap, or is older than the state the watcher began with
	started bool              // high means something
	seen    listwatch.Version // the newest version that the watcher has been shown
	listed  map[listwatch.Version]bool
	gaps    []*gap

	// The session.
	session *Session
	number  int
	next    int // the step that is due in it
	phase   phase
	state   []Item            // the initial events so far
	last    listwatch.Version // of the last event that was no initial one
	mark    listwatch.Version // of the last bookmark
	virgin  bool              // no change or bookmark yet
	base    listwatch.Version // of the state it began with
	floor   int               // the step that it began with, where it said "from now on"
	before  listwatch.Version // seen when it began
	frame   int               // the number of the frame at hand

	goals goals
}

// A phase is what a session is doing.
type phase uint8

const (
	opening   phase = iota // nothing has come
	initial                // initial events are coming
	following              // changes are coming
)

// A gap is a run of steps that were passed over. What comes late leaves it; what never comes is missing.
type gap struct {
	from, to int
	late     map[int]bool
	where    Violation // what to report if anything is missing
	torn     bool      // it began in the middle of a transaction
}

func (g *gap) has(step int) bool { return step >= g.from && step < g.to && !g.late[step] }

// run walks all sessions of a watcher. numbers are those of its sessions.
func (w *walk) run(numbers []int) {
	for _, n := range numbers {
		w.enter(n)
		for i := range w.session.Events {
			w.frame = i
			w.take(&w.session.Events[i])
		}
		w.frame = -1
		w.leave()
	}
	w.settle()
	w.goals.finish(w)
}

func (w *walk) enter(number int) {
	w.number, w.session = number, w.check.history.Sessions[number]
	w.phase, w.state, w.last, w.mark, w.base, w.virgin = opening, nil, 0, 0, 0, true
	w.before, w.floor = w.seen, 0
}

// open does what the first frame of a session calls for. Without any the session has shown nothing, and changed nothing.
func (w *walk) open() {
	asked := w.session.Request
	switch {
	case asked.InitialEvents:
		w.settle()
		w.phase = initial
		return
	case asked.Version != 0:
		w.resume(asked.Version)
		w.check.forbidFloor(w)
	default:
		w.settle()
		w.next = w.p.after(w.freshest())
		w.high, w.started = w.next, true
	}
	w.phase = following
}

// resume begins at the version that the watcher named.
func (w *walk) resume(at listwatch.Version) {
	w.next = w.p.after(at)
	switch {
	case !w.started || w.listed[at]:
		w.settle()
		w.high = w.next
	case w.next > w.high:
		// The watcher itself passed over something. It may come late all the same.
		w.skip(w.high, w.next, Resumable, fmt.Sprintf("a session that asks for what follows version %d", at))
		w.high = w.next
	}
	w.started = true
}

// freshest returns what a start at the newest state must show.
func (w *walk) freshest() listwatch.Version { return w.check.ledger.acked.before(w.session.Opened) }

func (w *walk) take(f *ReceivedEvent) {
	if w.phase == opening {
		w.open()
	}
	if w.phase == initial && !w.session.Request.Bookmarks && !f.Initial {
		w.endUnmarked(f)
	}
	switch {
	case f.Type == Synced:
		w.synced(f)
	case w.phase == initial:
		w.initial(f)
	case f.Type == Bookmark:
		w.bookmark(f)
	default:
		w.event(f)
	}
	w.goals.reached(w, f.ReceivedAt)
}

// event judges an event of the phase following.
func (w *walk) event(f *ReceivedEvent) {
	w.check.summary.Events++
	w.seen = max(w.seen, f.Version)
	step := w.judge(f)
	if step < 0 {
		return
	}
	w.forgive(step)
	switch {
	case step > w.next:
		w.skip(w.next, step, Reliable, describeFrame(f))
		fallthrough
	case step == w.next:
		w.next = step + 1
		if step < w.high && !w.fill(step, f) {
			w.report(Unique, "nothing that came before", describeFrame(f))
		}
	default:
		w.stale(step, f)
	}
	w.high = max(w.high, w.next)
	w.last, w.virgin = max(w.last, f.Version), false
}

// judge holds f against the write that it should come from, and returns the step that it is; negative: none.
func (w *walk) judge(f *ReceivedEvent) int {
	write, others := w.check.ledger.find(f.Version, f.Key)
	switch {
	case write < 0 && others == 1:
		// It can only be the one write of that version, under another name.
		from, _ := w.check.ledger.at(f.Version)
		step := int(w.p.place[from]) - 1
		w.report(ContentExact, "key "+w.check.ledger.writes[from].Key.String(), describeFrame(f))
		return step
	case write < 0 && others > 0:
		w.report(ContentExact, "a key that version has changed", describeFrame(f))
		return -1
	case write < 0:
		w.report(NoPhantom, "nothing: nobody wrote that version", describeFrame(f))
		return -1
	}
	if began := w.check.ledger.writes[write].Began; f.ReceivedAt != 0 && f.ReceivedAt < began {
		w.report(NoPhantom, fmt.Sprintf("nothing before the write began, at %v", began), describeFrame(f))
	}
	step := int(w.p.place[write]) - 1
	if step < 0 {
		w.report(NoPhantom, "nothing: that write does not concern the selection", describeFrame(f))
		return -1
	}
	want, payload := w.p.steps[step].what, w.p.payload(step)
	if f.Type != want || payload != 0 && f.Fingerprint != 0 && f.Fingerprint != payload {
		w.report(ContentExact, w.describe(step), describeFrame(f))
	}
	return step
}

// forgive lets a watch of the changes from now on begin anywhere between its request and its answer, and one of the changes from any
// version on where it likes.
func (w *walk) forgive(step int) {
	a := w.session.Request
	if !w.virgin || a.InitialEvents || a.Version != 0 {
		return
	}
	if a.AnyVersion {
		w.next, w.high = step, step
	}
	for w.next < step && w.check.ledger.writes[w.p.steps[w.next].write].Began <= w.session.Ready {
		w.next++
	}
	w.high = max(w.high, w.next)
	w.floor = w.next
}

// stale judges a step that the session has passed already.
func (w *walk) stale(step int, f *ReceivedEvent) {
	got := describeFrame(f)
	switch {
	case w.fill(step, f):
	case f.Version <= w.session.Request.Version && !w.session.Request.InitialEvents:
		w.report(Resumable, fmt.Sprintf("nothing up to version %d, which was asked for", w.session.Request.Version), got)
	case f.Version <= w.base:
		w.report(Bookmarkable, fmt.Sprintf("nothing up to version %d, at which the initial events ended", w.base), got)
	case step < w.floor:
		w.report(w.lateRule(f, false), "nothing older than what the session began with", got)
	default:
		w.report(Unique, "nothing that came before", got)
	}
}

// fill takes step out of the gap that it is in, and says what is wrong with coming late; false: it is in none.
func (w *walk) fill(step int, f *ReceivedEvent) bool {
	for _, g := range w.gaps {
		if !g.has(step) {
			continue
		}
		if g.late == nil {
			g.late = make(map[int]bool)
		}
		g.late[step] = true
		w.report(w.lateRule(f, g.torn), w.describe(step)+" in its place", describeFrame(f)+fmt.Sprintf(", after version %d", max(w.last, w.mark)))
		return true
	}
	return false
}

// lateRule returns the rule that f breaks by coming late; torn: within its transaction.
func (w *walk) lateRule(f *ReceivedEvent, torn bool) Guarantee {
	switch {
	case torn || f.Version == w.last:
		return Atomic
	case f.Version <= w.mark:
		return Bookmarkable
	}
	return Ordered
}

// skip opens a gap of the steps from to to, which got has passed over.
func (w *walk) skip(from, to int, rule Guarantee, got string) {
	if asked := w.session.Request; rule == Reliable && w.virgin && asked.Version != 0 && !asked.InitialEvents {
		rule = Resumable
		if w.check.belowFloor(w.session) {
			rule = ExpiryJustified
		}
	}
	g := &gap{from: from, to: to, where: w.violation(rule, "", got), torn: w.p.version(from) == w.last}
	w.gaps = append(w.gaps, g)
}

// settle reports what is still missing.
func (w *walk) settle() {
	for _, g := range w.gaps {
		first, missing := -1, 0
		for step := g.from; step < g.to; step++ {
			if g.late[step] {
				continue
			}
			if missing++; first < 0 {
				first = step
			}
		}
		if missing == 0 {
			continue
		}
		v := g.where
		v.Want = w.describe(first)
		if missing > 1 {
			v.Want += fmt.Sprintf(" and %d more", missing-1)
		}
		w.check.add(v)
	}
	w.gaps = nil
}

func (w *walk) leave() {
	s := w.session
	switch {
	case s.End.Expired:
	case w.phase == opening && w.listed[s.Request.Version]:
		w.open() // nothing came, but the list has shown something
	case s.End.Error != "" && s.End.Error != cleanEnd:
	case w.phase == opening && s.Request.Version == 0 && !s.Request.InitialEvents:
		w.open() // nothing came because there was nothing to come
	case w.phase != following && s.Request.InitialEvents && !s.Request.Bookmarks:
		// Nobody said that the state is complete, and nothing speaks against it.
		w.high, w.started, w.phase = max(w.high, w.p.after(w.freshest())), true, following
	}
	w.goals.reached(w, max(s.Opened, s.Ready))
	if w.session.End.Expired {
		w.check.expired(w)
	}
}

// describe returns step number n in words.
func (w *walk) describe(n int) string {
	s := w.p.steps[n]
	write := &w.check.ledger.writes[s.write]
	return describeEvent(s.what, write.Key, write.Version, w.p.payload(n))
}
