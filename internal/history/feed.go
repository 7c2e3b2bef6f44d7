package history

import (
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// A feed is what one selection sees of the log: a list of nodes that readers follow without a lock.
type feed struct {
	// Immutable after construction.
	selection selection
	terms     []term
	begin     listwatch.Version // records up to it are not in the feed

	// Guarded by Log.mu.
	head, tail *node
	first      *node   // the chain that publish will link behind tail
	last       *node   // its end
	marks      []*node // every markEvery-th node, for find
	length     int     // nodes ever published
	slots      []int   // where the index holds the feed, by term
	watchers   int
	idleSince  int    // entries of this feed in feeds.idle
	offered    uint64 // number of the record that was offered last

	mu sync.Mutex
	// Guarded by mu.
	sleepers []*Cursor // those whose wake is armed in this round
	spare    []*Cursor // an empty slice to sleep in next
	round    uint64    // grows whenever the sleepers are taken
}

// A node is one event of a feed. next is nil at the end, and cut once the node has left the window.
type node struct {
	rec  *record
	next atomic.Pointer[node]
	what transition
}

// cut is the next of every node that the window has passed.
var cut = new(node)

// markEvery is how many nodes lie between two marks.
const markEvery = 64

func newFeed(s selection, begin listwatch.Version) *feed {
	n := &node{rec: &record{version: begin}}
	return &feed{selection: s, terms: s.terms(), begin: begin, head: n, tail: n}
}

// offer adds r to the chain that publish will link, if it concerns f, and reports whether it is the first there. Log.mu is held.
func (f *feed) offer(r *record) (first bool) {
	what := f.selection.transition(r)
	if what == none {
		return false
	}
	n := &node{rec: r, what: what}
	if first = f.first == nil; first {
		f.first = n
	} else {
		f.last.next.Store(n)
	}
	f.last = n
	return first
}

// publish makes what was offered visible, all at once, and takes the sleepers, if any. Log.mu is held.
func (f *feed) publish() *sleepers {
	for n := f.first; n != nil; n = n.next.Load() {
		if f.length++; f.length%markEvery == 0 {
			f.marks = append(f.marks, n)
		}
	}
	f.tail.next.Store(f.first)
	f.tail = f.last
	f.first, f.last = nil, nil
	return f.takeSleepers()
}

// takeSleepers begins a new round and returns the cursors that slept in the one before, if any.
func (f *feed) takeSleepers() *sleepers {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sleepers) == 0 {
		return nil
	}
	// The cursors are not touched here: with ten thousand of them that would take longer than everything else.
	s := &sleepers{feed: f, cursors: f.sleepers, round: f.round}
	f.sleepers, f.spare = f.spare, nil
	f.round++
	return s
}

// find returns the last node whose version is at most v, where v is not before f.begin and in the window. Log.mu is held.
func (f *feed) find(v listwatch.Version) *node {
	lo, hi := 0, len(f.marks)
	for lo < hi {
		mid := (lo + hi) / 2
		if f.marks[mid].rec.version > v {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	n := f.head
	if lo > 0 {
		n = f.marks[lo-1]
	}
	for next := n.next.Load(); next != nil && next.rec.version <= v; next = n.next.Load() {
		n = next
	}
	return n
}

// trim takes r, the oldest record, out of f. Log.mu is held.
func (f *feed) trim(r *record) {
	old := f.head
	first := old.next.Load()
	if first == nil || first.rec != r {
		return
	}
	f.head = first
	if len(f.marks) > 0 && f.marks[0] == old {
		f.marks = f.marks[1:]
	}
	// Cut, so that a reader who stopped there holds one node and not everything behind it, and learns that it expired.
	old.next.Store(cut)
}
