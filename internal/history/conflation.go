package history

import (
	"slices"
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// A conflating cursor reads in passes. A pass ends at a version that is fixed when the pass begins.
// Within a pass the cursor skips a MODIFIED event if a later event of the same object follows in
// the same feed, at or before the end of the pass. So a pass returns each object that keeps
// changing once, however slow the reader is. Added and deleted objects are never skipped, so the
// reader can resume after any event: it has every object that exists at that version, and the newer
// state of a stale object is still to come.
//
// The state of the reader is exact only between two passes. Until the end of a pass,
// [Cursor.Position] is therefore the position at which the pass began.

// IsConflating reports whether c skips superseded events.
func (c *Cursor) IsConflating() bool { return c.conflates }

// IsInPass reports whether a conflating cursor may have more events of the current pass. If not,
// the next Poll that returns an event begins a pass.
func (c *Cursor) IsInPass() bool { return c.passEnd != 0 || c.phase != readingFeed }

// beginPass begins a pass that ends at end. position is the version up to which c has returned all
// events. If a pass has begun already, it is extended.
func (c *Cursor) beginPass(position, end listwatch.Version) {
	if c.passEnd == 0 {
		c.after = max(c.after, position)
	}
	c.passEnd = max(c.passEnd, end)
}

// endPass ends the pass if c, which has read everything up to v, has reached its end.
func (c *Cursor) endPass(v listwatch.Version) {
	if v >= c.passEnd {
		c.passEnd = 0
	}
}

// isInPass reports whether n, the next node, belongs to the current pass. If there is no pass,
// isInPass begins one, unless the caller's batch already has the events of another one.
func (c *Cursor) isInPass(n *node, hasEvents bool) bool {
	v := n.handle.version
	if c.passEnd == 0 && !hasEvents {
		// The nodes of a record become visible before the Revision reaches its version.
		c.beginPass(v-1, max(v, c.feed.log.revision.Version()))
		c.feed.catchUp() // marks the nodes up to the end of the pass
	}
	c.endPass(v - 1)
	return c.passEnd != 0
}

// skips reports whether c skips the event of n.
func (c *Cursor) skips(n *node) bool {
	if !c.conflates || n.eventType != listwatch.Modified {
		return false
	}
	by := listwatch.Version(n.superseded.Load())
	return by != 0 && by <= c.passEnd
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

// drop drops all nodes.
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

// conflateBacklog conflates the next records of the backlog. It returns the number after the last
// of them.
func (c *Cursor) conflateBacklog() (end uint64) {
	b, l := &c.start.backlog, c.feed.log
	if b.next < b.conflated.end() {
		return b.conflated.end()
	}
	limit := conflatedRecords
	if !c.feed.selection.Projection.Empty() {
		limit = projectedRecords
	}
	l.mu.Lock()
	from, count := max(b.next, l.records.first()), min(limit, int(b.end-b.next))
	records := l.records.appendGroups(nil, from, count)
	l.mu.Unlock()
	if from > b.next {
		return b.end // the caller fails
	}
	b.conflated = conflatedRange{first: from, skip: make([]bool, len(records))}
	follows := make(map[listwatch.Key]bool) // the keys that have a later event
	for i, r := range slices.Backward(records) {
		if t := c.feed.selection.effect(r); t != 0 {
			key := r.object().Key
			b.conflated.skip[i] = t == listwatch.Modified && follows[key]
			follows[key] = true
		}
	}
	c.beginPass(records[0].Version-1, records[len(records)-1].Version)
	return b.conflated.end()
}
