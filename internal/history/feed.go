package history

import (
	"math"
	"sort"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A feed holds the newest events of one selection. All watchers of the selection share it.
type feed struct {
	// Immutable after construction.
	log       *Log
	selection selection
	key       string // the key of selection
	stateID   string // see [listwatch.State]

	// Readers follow the nodes of chain without a lock. The fields of chain are guarded by Log.mu
	// or, if a matcher serves the feed, by matcher.mu.
	chain   chain
	entry   indexEntry // guarded by Log.mu
	matched *matched   // not nil if a matcher serves the feed
	wakeups wakeList   // has a lock of its own
}

func newFeed(l *Log, s selection, key string, start listwatch.Version) *feed {
	chain := newChain(start, l.records.next, frames.NewFeed(l.caches.records))
	f := &feed{log: l, selection: s, key: key, stateID: stateID(l.description.Epoch, key), chain: chain}
	if !s.Projection.Empty() {
		f.selection.mask, _ = rawjson.ParseMask(s.Projection.String()) // a Projection is valid
		f.chain.reductions = &reductions{budget: l.caches.records}
	}
	return f
}

// lock acquires the mutex that guards f.chain, in addition to Log.mu, which must be held. It
// ensures that every record was offered to f.
func (f *feed) lock() (unlock func()) {
	if f.matched == nil {
		return func() {}
	}
	m := &f.log.feeds.matcher
	m.mu.Lock()
	m.catchUp(f)
	return m.mu.Unlock
}

// catchUp ensures that every record appended before the call was offered to f.
func (f *feed) catchUp() {
	if f.matched == nil {
		return
	}
	for f.matched.next.Load() < f.log.records.published.Load() {
		f.log.feeds.matcher.visit(func() []*feed { return []*feed{f} })
	}
}

// event returns the event of n, a node with the record r, and its cached frames.
func (f *feed) event(n *node, r *record) (listwatch.Event, frames.Ref) {
	t, ref := n.eventType, frames.Ref{Node: &n.segments}
	if n.reduction == nil {
		ref.Frames = r.framesOf(t)
		return r.event(t, f.shown(r, t)), ref
	}
	ref.Frames = &n.reduction.frames
	return r.event(t, n.reduction.get(f, r, t)), ref
}

// A node is one event of a feed.
type node struct {
	handle    *handle
	eventType listwatch.EventType
	// skipped is set before next becomes cutLink. It is the number of records from this node to the
	// node that followed it, or zero if the chain started again after this node.
	skipped uint32
	// superseded is the version of the next node of the same object, or zero if there is none or if
	// the feed has had no conflating watcher.
	superseded atomic.Uint64
	segments   frames.Node // the frames that are compressed together with earlier events
	reduction  *reduction  // nil if the feed has no projection
	// next is nil in the newest node, and cutLink in the nodes before the floor.
	next atomic.Pointer[node]
}

// cutLink is the value of next in every node before the floor of its chain. A cursor that
// follows it continues with the log, if the log still has the records that follow.
var cutLink = new(node)

// A chain consists of the nodes of a feed, from the floor to the newest.
type chain struct {
	// Immutable after construction.
	segments   *frames.Feed // the compressed segments of the nodes
	reductions *reductions  // nil if the feed has no projection

	len int // the number of nodes after the floor
	// floor is the newest dropped node, or the empty node that the chain started with.
	floor     *node
	newest    *node
	positions positions
	latest    *latestNodes // nil before the feed has a conflating watcher
	// appended holds the nodes that publish will link after newest. Both fields are nil if
	// there are none.
	appended struct{ first, last *node }
}

// newChain returns an empty chain. The record with the given number is the first that may get a
// node. start is the version of the state before that record.
func newChain(start listwatch.Version, number uint64, segments *frames.Feed) chain {
	n := &node{handle: &handle{version: start, number: number - 1}}
	return chain{segments: segments, floor: n, newest: n}
}

// append adds a node that readers do not see yet, and reports whether it is the only such
// node.
func (c *chain) append(r *record, t listwatch.EventType) (only bool) {
	n := &node{handle: r.handle, eventType: t}
	n.segments.Init(c.segments)
	if c.latest != nil {
		c.latest.add(r, n)
	}
	if c.reductions != nil {
		n.reduction = c.reductions.add()
	}
	if only = c.appended.first == nil; only {
		c.appended.first = n
	} else {
		c.appended.last.next.Store(n)
	}
	c.appended.last = n
	return only
}

// publish makes the appended nodes visible to readers, all in one step. It returns the number of
// these nodes.
func (c *chain) publish() (added int) {
	for n := c.appended.first; n != nil; n = n.next.Load() {
		c.positions.add(n)
		added++
	}
	if added > 0 {
		c.len += added
		c.newest.next.Store(c.appended.first)
		c.newest = c.appended.last
		c.appended.first, c.appended.last = nil, nil
	}
	return added
}

// find returns the last node with a version of at most v. v must not be less than the version of
// the floor.
func (c *chain) find(v listwatch.Version) *node {
	n := c.positions.find(v)
	if n == nil {
		n = c.floor
	}
	for next := n.next.Load(); next != nil && next.handle.version <= v; next = n.next.Load() {
		n = next
	}
	return n
}

// drop moves the floor to the oldest node, if the number of its record is less than the given one.
// It reports whether the floor moved.
func (c *chain) drop(below uint64) bool {
	old := c.floor
	oldest := old.next.Load()
	if oldest == nil || oldest.handle.number >= below {
		return false
	}
	c.floor = oldest
	c.len--
	oldest.drop()
	c.positions.drop(old)
	old.skipped = uint32(min(oldest.handle.number-old.handle.number, math.MaxUint32))
	// Cut the link, so that a reader that stopped at the old floor keeps only that node in
	// memory and not all later nodes.
	old.next.Store(cutLink)
	c.latest.shrink(c)
	return true
}

// restart empties the chain, and every cursor in it expires. See [newChain] for the parameters.
func (c *chain) restart(start listwatch.Version, number uint64) {
	c.dropAll()
	old, reductions := c.newest, c.reductions
	*c = newChain(start, number, c.segments)
	c.reductions = reductions
	old.next.Store(cutLink)
}

// dropAll drops what the log has cached for the nodes, and latest, because c will not be used
// again.
func (c *chain) dropAll() {
	c.latest.drop()
	c.latest = nil
	for n := c.floor; n != nil && n != cutLink; n = n.next.Load() {
		n.drop()
	}
}

// positions is an index of the nodes of a chain by version. It holds every 64th node, in
// order.
type positions struct {
	nodes []*node
	added int // nodes added to the chain so far
}

const positionInterval = 64

func (p *positions) add(n *node) {
	if p.added++; p.added%positionInterval == 0 {
		p.nodes = append(p.nodes, n)
	}
}

// find returns the last indexed node with a version of at most v, or nil if there is none.
func (p *positions) find(v listwatch.Version) *node {
	i := sort.Search(len(p.nodes), func(i int) bool { return p.nodes[i].handle.version > v })
	if i == 0 {
		return nil
	}
	return p.nodes[i-1]
}

// drop removes n from the index, if n is indexed. n must be the oldest node.
func (p *positions) drop(n *node) {
	if len(p.nodes) > 0 && p.nodes[0] == n {
		p.nodes[0] = nil
		p.nodes = p.nodes[1:]
	}
}
