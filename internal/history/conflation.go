package history

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A conflating watcher reads in passes. A pass ends at a version that is fixed when the pass
// begins. Within a pass the watcher skips a MODIFIED event if a later event of the same object
// follows in the same feed, at or before the end of the pass. So a pass returns each object that
// keeps changing once, however slow the reader is. Added and deleted objects are never skipped, so
// the reader can resume after any event: it has every object that exists at that version, and the
// newer state of a stale object is still to come.
//
// The state of the reader is exact only between two passes. Until the end of a pass, its progress
// is therefore the version at which the pass began.

// paced is a conflating watcher: a Cursor that reads in passes. The parts of a union share its
// pass.
type paced struct {
	*Cursor
	pass     *pass
	revision *revision.Revision
}

// pace returns c, which reads only within pass, as a Watcher that begins and ends the passes. If
// pass is nil, it returns c.
func pace(c *Cursor, pass *pass, revision *revision.Revision) listwatch.Watcher {
	if pass == nil {
		return c
	}
	return &paced{c, pass, revision}
}

// Poll implements [listwatch.Poller].
func (p *paced) Poll(dst []listwatch.Event) (n int, err error) { return p.PollFrames(dst, nil) }

// PollFrames is like the PollFrames of [Cursor].
func (p *paced) PollFrames(dst []listwatch.Event, refs []frames.Ref) (n int, err error) {
	for {
		hasBegun := p.begin()
		n, err = p.Cursor.PollFrames(dst, refs)
		at := p.Cursor.Progress()
		if at.Version >= p.pass.end || n == 0 && p.pass.isMinimal() || err != nil {
			p.pass.end = 0
		}
		if hasBegun || n > 0 || err != nil || !hasState(at) {
			return n, err
		}
	}
}

// begin begins a pass, unless there is one. It reports false if the watcher still returns initial
// events, or waits for its start version.
func (p *paced) begin() bool {
	if p.pass.end != 0 {
		return true
	}
	newest := p.revision.Version()
	at := p.Cursor.Progress()
	if !hasState(at) {
		return false
	}
	// The nodes of a record become visible before the Revision reaches its version. A backlog
	// extends the pass.
	p.pass.began, p.pass.end = at.Version, at.Version+1
	if !at.More {
		p.pass.end = max(p.pass.end, newest)
	}
	return true
}

// hasState reports whether the reader has received the initial events, or has a state of its own.
func hasState(p listwatch.Progress) bool { return p.State != listwatch.State{} }

// Next implements [listwatch.Watcher].
func (p *paced) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	return p.signal.next(ctx, p, dst)
}

// Progress implements [listwatch.Poller].
func (p *paced) Progress() listwatch.Progress {
	at := p.Cursor.Progress()
	at.Conflates = true
	if p.pass.end != 0 {
		at.Version, at.More = p.pass.began, true
	}
	return at
}

// A pass is a range of versions. A conflating watcher returns only events within its pass.
type pass struct {
	began listwatch.Version // the version up to which all events were returned before
	end   listwatch.Version // zero between two passes, when the watcher returns no events
}

// newPass returns the pass of a watcher with the query q, or nil if the watcher returns every
// event.
func newPass(q listwatch.Query) *pass {
	if q.Conflate == 0 {
		return nil
	}
	return new(pass)
}

// isMinimal reports whether the pass has only one version. Such a pass has skipped nothing, so it
// may still be extended.
func (p *pass) isMinimal() bool { return p.end == p.began+1 }

// skips reports whether the event of n, a node in the pass, is skipped.
func (p *pass) skips(n *node) bool {
	by := listwatch.Version(n.superseded.Load())
	return n.eventType == listwatch.Modified && by != 0 && by <= p.end
}

// conflate makes f mark the nodes that are superseded. Log.mu must be held.
func (f *feed) conflate() {
	defer f.lock()()
	if f.chain.latest != nil {
		return
	}
	f.chain.latest = &latestNodes{total: &f.log.feeds.size.latest, nodes: make(map[listwatch.Key]*node)}
	for n := f.chain.floor.next.Load(); n != nil; n = n.next.Load() {
		// A matcher may not have dropped the nodes of dropped records yet. No cursor can read them.
		if r := n.handle.record.Load(); r != nil {
			f.chain.latest.add(r, n)
		}
	}
}

// latestNodes holds the newest node of each object that has a node in a chain. It may also hold
// nodes that the chain has dropped.
type latestNodes struct {
	total *atomic.Int64 // the number of nodes in the latestNodes of all feeds
	nodes map[listwatch.Key]*node
}

// latestBytes estimates the memory of an entry of latestNodes.
const latestBytes = 80

// add adds n, the node of r, and marks the preceding node of the same object.
func (l *latestNodes) add(r *record, n *node) {
	key := r.object().Key
	if older := l.nodes[key]; older != nil {
		older.superseded.Store(uint64(r.Version))
	} else {
		l.total.Add(1)
	}
	l.nodes[key] = n
}

// shrink removes the nodes that c has dropped if they are the majority, so that dropping a node
// takes constant time on average.
func (l *latestNodes) shrink(c *chain) {
	if l == nil || len(l.nodes) <= 2*c.len+positionInterval {
		return
	}
	kept := make(map[listwatch.Key]*node, c.len) // deleting from a map does not release its memory
	for key, n := range l.nodes {
		if n.handle.number > c.floor.handle.number {
			kept[key] = n
		}
	}
	l.total.Add(int64(len(kept) - len(l.nodes)))
	l.nodes = kept
}

// drop removes all nodes from l, which may be nil.
func (l *latestNodes) drop() {
	if l != nil {
		l.total.Add(-int64(len(l.nodes)))
		l.nodes = nil
	}
}

// A conflatedRange is the part of a backlog that a conflating cursor reads. Its records are
// conflated with each other, so a cursor that reads old records needs little memory.
type conflatedRange struct {
	first uint64 // the number of the first record
	skip  []bool // for each record, whether its event is skipped
}

// conflatedRecords is the number of records in a conflatedRange, and projectedRecords if their
// objects must be compared.
const (
	conflatedRecords = 4096
	projectedRecords = 512
)

// end returns the number after the last record of r.
func (r *conflatedRange) end() uint64 { return r.first + uint64(len(r.skip)) }

// skips reports whether the event of the record with the given number is skipped.
func (r *conflatedRange) skips(number uint64) bool {
	return r.skip != nil && r.skip[number-r.first]
}

// conflate conflates the next records of the pass. It returns the number after the last of them.
func (b *backlog) conflate() (end uint64) {
	if b.next < b.conflated.end() {
		return b.conflated.end()
	}
	records, ok := b.nextRecords()
	if !ok {
		return b.end // read fails
	}
	b.conflated = conflatedRange{first: b.next, skip: make([]bool, len(records))}
	follows := make(map[listwatch.Key]bool) // the keys that have a later event
	for i, r := range slices.Backward(records) {
		if t := b.live.feed.selection.effect(r); t != 0 {
			key := r.object().Key
			b.conflated.skip[i] = t == listwatch.Modified && follows[key]
			follows[key] = true
		}
	}
	return b.conflated.end()
}

// nextRecords returns the next records of the pass, and extends a pass that has just begun. It
// returns false if the next record was dropped.
func (b *backlog) nextRecords() (records []*record, ok bool) {
	log, pass := b.live.feed.log, b.live.pass
	limit := conflatedRecords
	if !b.live.feed.selection.Projection.Empty() {
		limit = projectedRecords
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if b.next >= b.end || b.next < log.records.first() {
		return nil, b.next >= b.end
	}
	if !pass.isMinimal() && log.records.get(b.next).Version > pass.end {
		return nil, true
	}
	records = log.records.appendGroups(nil, b.next, min(limit, int(b.end-b.next)))
	if last := len(records) - 1; pass.isMinimal() {
		pass.end = max(pass.end, records[last].Version)
	} else {
		for ; records[last].Version > pass.end; last-- {
		}
		records = records[:last+1]
	}
	return records, true
}
