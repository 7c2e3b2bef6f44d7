package history

import (
	"sort"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A feed holds the events of one selection. All watchers of the selection share it.
type feed struct {
	// Immutable after construction.
	log       *Log
	selection selection
	start     listwatch.Version // the feed contains records after this version

	// Readers follow the nodes of chain without a lock. The fields of chain are guarded by Log.mu.
	chain   chain
	entry   indexEntry // guarded by Log.mu
	wakeups wakeList   // has a lock of its own
}

func newFeed(l *Log, s selection, start listwatch.Version) *feed {
	return &feed{log: l, selection: s, start: start, chain: newChain(start, frames.NewFeed(l.caches.records))}
}

// A node is one event of a feed.
type node struct {
	record     *record
	transition transition
	segments   frames.Node // the frames that are compressed together with earlier events
	// next is nil in the newest node, and cutLink in the nodes before the floor.
	next atomic.Pointer[node]
}

// cutLink is the value of next in every node before the floor of its chain. A cursor that
// follows it has expired.
var cutLink = new(node)

// A chain consists of the nodes of a feed, from the floor to the newest.
type chain struct {
	segments *frames.Feed // the compressed segments of the nodes; the pointer is immutable
	// floor is the newest dropped node, or the empty node that the chain started with.
	floor     *node
	newest    *node
	positions positions
	// appended holds the nodes that publish will link after newest. Both fields are nil if
	// there are none.
	appended struct{ first, last *node }
}

func newChain(start listwatch.Version, segments *frames.Feed) chain {
	n := &node{record: &record{Record: Record{Version: start}}}
	return chain{segments: segments, floor: n, newest: n}
}

// append adds a node that readers do not see yet, and reports whether it is the only such
// node.
func (c *chain) append(r *record, t transition) (only bool) {
	n := &node{record: r, transition: t}
	n.segments.Init(c.segments)
	if only = c.appended.first == nil; only {
		c.appended.first = n
	} else {
		c.appended.last.next.Store(n)
	}
	c.appended.last = n
	return only
}

// publish makes the appended nodes visible to readers, all in one step.
func (c *chain) publish() {
	for n := c.appended.first; n != nil; n = n.next.Load() {
		c.positions.add(n)
	}
	c.newest.next.Store(c.appended.first)
	c.newest = c.appended.last
	c.appended.first, c.appended.last = nil, nil
}

// find returns the last node with a version of at most v. v must not be less than the version of
// the floor.
func (c *chain) find(v listwatch.Version) *node {
	n := c.positions.find(v)
	if n == nil {
		n = c.floor
	}
	for next := n.next.Load(); next != nil && next.record.Version <= v; next = n.next.Load() {
		n = next
	}
	return n
}

// drop moves the floor to the node of r, the oldest record, if the chain has a node for it.
func (c *chain) drop(r *record) {
	old := c.floor
	oldest := old.next.Load()
	if oldest == nil || oldest.record != r {
		return
	}
	c.floor = oldest
	oldest.segments.Drop()
	c.positions.drop(old)
	// Cut the link, so that a reader that stopped at the old floor keeps only that node in
	// memory and not all later nodes.
	old.next.Store(cutLink)
}

// restart empties the chain. The chain then starts at v, and every cursor in it expires.
func (c *chain) restart(v listwatch.Version) {
	c.dropFrames()
	old := c.newest
	*c = newChain(v, c.segments)
	old.next.Store(cutLink)
}

// dropFrames drops the frames of all nodes.
func (c *chain) dropFrames() {
	for n := c.floor; n != nil && n != cutLink; n = n.next.Load() {
		n.segments.Drop()
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
	i := sort.Search(len(p.nodes), func(i int) bool { return p.nodes[i].record.Version > v })
	if i == 0 {
		return nil
	}
	return p.nodes[i-1]
}

// drop removes n from the index, if n is indexed. n must be the oldest node.
func (p *positions) drop(n *node) {
	if len(p.nodes) > 0 && p.nodes[0] == n {
		p.nodes = p.nodes[1:]
	}
}
