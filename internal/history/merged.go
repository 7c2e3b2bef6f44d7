package history

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// merged is the last stage of a cursor of a union. It returns the events of the cursors of all
// parts in the order of versions, and holds at most one event of each that it has not returned yet.
type merged struct {
	// Immutable after construction.
	revision *revision.Revision
	stateID  string
	wakeFunc func() // fire; evaluated once, because each evaluation allocates

	parts  []mergedPart // owned by the reader, except for their cursors
	closed atomic.Bool

	mu sync.Mutex
	// Guarded by mu.
	wake   func() // nil unless merged is armed
	cancel func() // cancels the callback of revision; nil if there is none
}

// A mergedPart is one of the cursors that merged reads.
type mergedPart struct {
	cursor *Cursor // immutable after construction
	// pending[0] is the next event, and refs[0] its frames, if isPending is true. They are arrays
	// because PollFrames takes slices.
	pending   [1]listwatch.Event
	refs      [1]frames.Ref
	isPending bool
}

// newMerged returns the last stage of a cursor of u. The caller sets the cursors of its n parts.
func newMerged(u *Union, n int) *merged {
	m := &merged{revision: u.revision, stateID: u.stateID, parts: make([]mergedPart, n)}
	m.wakeFunc = m.fire
	return m
}

// snapshot returns the stage for the state of p at v, without a next stage.
func (p *mergedPart) snapshot(v listwatch.Version, s *start) (*snapshot, error) {
	f := p.cursor.last.(*live).feed
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if !f.log.records.canStart(v) {
		return nil, listExpired()
	}
	return f.snapshot(f.log.stateAt(v), v, s), nil
}

// fill makes the next event of p pending, if there is one. Otherwise it returns a version up to
// which p has returned all events, or the greatest version if p has no event up to the Revision.
func (p *mergedPart) fill() (settled listwatch.Version, err error) {
	if p.isPending || p.isIdle() {
		return math.MaxUint64, nil
	}
	var n int
	if n, err = p.cursor.PollFrames(p.pending[:], p.refs[:]); n == 0 {
		return p.cursor.Progress().Version, err
	}
	// A stream that changed its feed with each event would join and leave segments all the time, so
	// the events of a union have no node.
	p.isPending, p.refs[0].Node = true, nil
	return math.MaxUint64, nil
}

// isIdle reports whether p has read its whole feed. It is cheaper than PollFrames: after most
// writes, all parts but one are idle.
func (p *mergedPart) isIdle() bool {
	l, ok := p.cursor.stage.(*live)
	if !ok {
		return false
	}
	l.feed.catchUp()
	return !l.isReady()
}

// take returns the pending event.
func (p *mergedPart) take() (e listwatch.Event, ref frames.Ref) {
	e, ref = p.pending[0], p.refs[0]
	p.pending[0], p.refs[0], p.isPending = listwatch.Event{}, frames.Ref{}, false
	return e, ref
}

// read returns the events up to the Revision. If a part fails, read returns no event of a later
// version than the events that the part has returned, so that no client resumes after events that
// it has missed.
func (m *merged) read(b batch) (batch, stage, error) {
	// Load the revision before filling the parts: each write up to it is then in its feed, so a
	// part without a pending event has no event up to it, unless the part is reading its log.
	settled := m.revision.Version()
	for i := range m.parts {
		v, err := m.parts[i].fill()
		if err != nil {
			return b, m, err
		}
		settled = min(settled, v)
	}
	for !b.isFull() {
		next := m.next()
		if next == nil || next.pending[0].Version > settled {
			break
		}
		b.put(next.take())
		v, err := next.fill()
		if err != nil {
			return b, m, err
		}
		settled = min(settled, v)
	}
	return b, m, nil
}

// next returns the part with the oldest pending event, or nil if no event is pending. Among events
// of one version, the first part comes first.
func (m *merged) next() (next *mergedPart) {
	for i := range m.parts {
		p := &m.parts[i]
		if p.isPending && (next == nil || p.pending[0].Version < next.pending[0].Version) {
			next = p
		}
	}
	return next
}

func (m *merged) progress() listwatch.Progress {
	// Load the revision first; see read.
	all := listwatch.Progress{State: listwatch.State{Version: m.revision.Version(), ID: m.stateID}}
	for i := range m.parts {
		p := &m.parts[i]
		if p.isPending {
			all.Version = min(all.Version, p.pending[0].Version-1)
			continue
		}
		at := p.cursor.Progress()
		all.Version, all.More = min(all.Version, at.Version), all.More || at.More
	}
	return all
}

func (m *merged) arm(wake func()) bool {
	m.set(wake)
	for i := range m.parts {
		if p := &m.parts[i]; !p.isPending {
			p.cursor.Wake(m.wakeFunc)
		}
	}
	// An event that is pending now may be newer than the revision, because a store advances the
	// revision after it has appended the event.
	if next := m.next(); next != nil {
		cancel := m.revision.OnReached(next.pending[0].Version, m.wakeFunc)
		m.mu.Lock()
		m.cancel = cancel
		m.mu.Unlock()
	}
	if m.closed.Load() { // close may have run before cancel was set
		m.fire()
	}
	return true
}

// set makes fire call wake.
func (m *merged) set(wake func()) {
	m.mu.Lock()
	cancel := m.cancel
	m.wake, m.cancel = wake, nil
	m.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// fire calls the function of the last arm, unless it was already called.
func (m *merged) fire() {
	m.mu.Lock()
	wake, cancel := m.wake, m.cancel
	m.wake, m.cancel = nil, nil
	m.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if wake != nil {
		wake()
	}
}

func (m *merged) isClosed() bool { return m.closed.Load() }

func (m *merged) close() {
	if m.closed.Swap(true) {
		return
	}
	for i := range m.parts {
		if c := m.parts[i].cursor; c != nil {
			_ = c.Close() // always nil
		}
	}
	m.fire()
}
