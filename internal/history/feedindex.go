package history

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/sharedmaps"
)

// A feedIndex holds the feeds of a log, and finds the feeds that a write may concern. It is
// guarded by Log.mu.
type feedIndex struct {
	bySelection map[string]*feed // by feed.key
	byTerm      map[term][]*feed
	// idle has an entry for each time that a feed lost its last watcher, oldest first.
	idle     []idleFeed
	watchers int
	// projections is the number of feeds with a projection. It can be read without Log.mu.
	projections atomic.Int64
	// unpublished holds the feeds with nodes that readers do not see before the call of publish.
	unpublished []*feed
	size        feedSize
	matcher     matcher // has a lock of its own

	// Immutable after construction.
	log    *Log
	limits feedLimits
}

// feedLimits limit the memory and the CPU time of the feeds of a log.
type feedLimits struct {
	// A feed keeps its newest nodesPerFeed nodes as long as their records are retained. It may keep
	// more while all feeds together have at most nodesPerRecord nodes for each retained record, and
	// nodesPerFeed for each feed. So the memory of feeds does not grow with the product of records
	// and selections. A watcher that needs older nodes reads the log.
	nodesPerFeed, nodesPerRecord int
	// feedsPerTerm limits the feeds that a write must match because of one term. A matcher serves
	// further feeds.
	feedsPerTerm int
	// idle is the maximum number of entries of feedIndex.idle.
	idle int
}

var defaultFeedLimits = feedLimits{nodesPerFeed: 64, nodesPerRecord: 8, feedsPerTerm: 128, idle: 1024}

// A feedSize counts what determines the memory of the feeds of a log.
type feedSize struct {
	nodes   int          // the nodes of the feeds in byTerm
	reduced atomic.Int64 // the memory of their reduced objects
	// latest is the number of nodes in the latestNodes of all feeds.
	latest atomic.Int64
}

const (
	// nodeBytes is the memory of a node.
	nodeBytes = 80
	// feedBytes estimates the memory of a feed, without its nodes and its selector. A watch with a
	// long selector counts as several against the limit of watches.
	feedBytes = 1 << 10
)

// An indexEntry holds the feedIndex's data about one feed.
type indexEntry struct {
	terms       []term // the terms that the feed is indexed by; none if a matcher serves the feed
	slots       []int  // the index of the feed in byTerm[terms[i]]
	watchers    int
	idleEntries int    // the number of entries of the feed in feedIndex.idle
	offered     uint64 // the number of the last record offered to the feed
}

type idleFeed struct {
	feed  *feed
	since time.Time
}

// feedIdleTimeout is the time after which a feed without watchers is removed. A watcher that
// reconnects earlier resumes in the same feed. A feed whose key has more than maxIdleText bytes
// is removed at once, and its watcher reads the log.
const (
	feedIdleTimeout = 30 * time.Second
	maxIdleText     = 1 << 10
)

// newFeedIndex returns the empty index of l.
func newFeedIndex(l *Log) feedIndex {
	return feedIndex{
		bySelection: make(map[string]*feed), byTerm: make(map[term][]*feed), matcher: matcher{log: l},
		log: l, limits: defaultFeedLimits,
	}
}

// join adds a watcher to the feed of s and returns the feed. A new feed starts at the given
// version.
func (i *feedIndex) join(s selection, start listwatch.Version) *feed {
	key := s.Key()
	f := i.bySelection[key]
	if f == nil {
		f = newFeed(i.log, s, key, start)
		i.bySelection[key] = f
		if f.selection.mask != nil {
			i.projections.Add(1)
		}
		i.add(f)
	}
	f.entry.watchers++
	i.watchers++
	return f
}

// add adds f to the index or, if that would make writes slow, to the matcher.
func (i *feedIndex) add(f *feed) {
	terms := f.selection.terms()
	crowded := func(t term) bool { return len(i.byTerm[t]) >= i.limits.feedsPerTerm }
	if f.selection.isSelective() && terms[0].isBroad() || slices.ContainsFunc(terms, crowded) {
		i.matcher.add(f)
		return
	}
	f.chain.countIn(&i.size.reduced)
	f.entry.terms = terms
	for _, t := range terms {
		f.entry.slots = append(f.entry.slots, len(i.byTerm[t]))
		i.byTerm[t] = append(i.byTerm[t], f)
	}
}

// leave removes a watcher from f.
func (i *feedIndex) leave(f *feed, now time.Time) {
	i.watchers--
	if f.entry.watchers--; f.entry.watchers > 0 {
		return
	}
	if f.matched != nil || len(f.key) > maxIdleText {
		i.remove(f) // it costs CPU time at each write, or much memory
		return
	}
	if len(i.idle) == 0 {
		time.AfterFunc(feedIdleTimeout, i.log.removeIdleFeeds)
	}
	i.idle = append(i.idle, idleFeed{f, now})
	f.entry.idleEntries++
	i.removeIdle(now)
}

// removeIdleFeeds removes the feeds without watchers. It calls itself again while there are any.
func (l *Log) removeIdleFeeds() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.feeds.removeIdle(now); len(l.feeds.idle) > 0 {
		time.AfterFunc(l.feeds.idle[0].since.Add(feedIdleTimeout).Sub(now), l.removeIdleFeeds)
	}
}

// removeIdle removes the feeds that have had no watcher for feedIdleTimeout, and those that have
// had no watcher for the longest time if there are too many.
func (i *feedIndex) removeIdle(now time.Time) {
	for len(i.idle) > i.limits.idle || len(i.idle) > 0 && now.Sub(i.idle[0].since) >= feedIdleTimeout {
		f := i.idle[0].feed
		i.idle[0].feed = nil
		i.idle = i.idle[1:]
		// If watchers have joined and left the feed again, the feed has a later entry, which
		// determines when the feed is removed.
		if f.entry.idleEntries--; f.entry.idleEntries == 0 && f.entry.watchers == 0 {
			i.remove(f)
		}
	}
}

func (i *feedIndex) remove(f *feed) {
	delete(i.bySelection, f.key)
	if f.selection.mask != nil {
		i.projections.Add(-1)
	}
	if f.matched != nil {
		i.matcher.remove(f)
		return
	}
	f.chain.dropAll()
	i.size.nodes -= f.chain.len
	for n, t := range f.entry.terms {
		feeds, slot := i.byTerm[t], f.entry.slots[n]
		last := len(feeds) - 1
		moved := feeds[last]
		feeds[slot] = moved
		moved.entry.slots[slices.Index(moved.entry.terms, t)] = slot
		feeds[last] = nil
		if i.byTerm[t] = feeds[:last]; last == 0 {
			delete(i.byTerm, t)
		}
	}
}

// nodeBytes returns the memory of the nodes that dropping records releases.
func (i *feedIndex) nodeBytes() int64 { return int64(i.size.nodes)*nodeBytes + i.size.reduced.Load() }

// bytes estimates the memory of all feeds.
func (i *feedIndex) bytes() int64 {
	matched := i.matcher.nodes.Load()*nodeBytes + i.matcher.reduced.Load()
	return i.nodeBytes() + matched + int64(len(i.bySelection))*feedBytes + i.size.latest.Load()*latestBytes
}

// offer appends r to the feeds that the record concerns. Readers do not see the record before the
// call of publish.
func (i *feedIndex) offer(r *record) {
	number := r.handle.number + 1
	i.forEachCandidate(r, func(f *feed) {
		if f.entry.offered == number {
			return
		}
		f.entry.offered = number
		if t := f.selection.effect(r); t != 0 && f.chain.append(r, t) {
			i.unpublished = append(i.unpublished, f)
		}
	})
}

// publish makes the offered records visible, and moves the cursors that wait for them to the waker
// w.
func (i *feedIndex) publish(w *waker) {
	limit := i.limits.nodesPerRecord*i.log.records.len + i.limits.nodesPerFeed*len(i.bySelection)
	for _, f := range i.unpublished {
		i.size.nodes += f.chain.publish()
		w.add(f.wakeups.take())
		for i.size.nodes > limit && f.chain.len > i.limits.nodesPerFeed && f.chain.drop(math.MaxUint64) {
			i.size.nodes--
		}
	}
	clear(i.unpublished)
	i.unpublished = i.unpublished[:0]
}

// drop removes r, the oldest record, from the indexed feeds that the record concerns.
func (i *feedIndex) drop(r *record) {
	i.forEachCandidate(r, func(f *feed) {
		if f.chain.drop(r.handle.number + 1) {
			i.size.nodes--
		}
	})
}

// restart empties the chain of f, and every cursor in it expires. The chain continues after v, the
// version of the newest record.
func (i *feedIndex) restart(f *feed, v listwatch.Version) {
	if f.matched != nil {
		i.matcher.restart(f, v)
		return
	}
	i.size.nodes -= f.chain.len
	f.chain.restart(v, i.log.records.next)
}

// forEachCandidate calls visit with every feed that r may concern. It finds the feeds by
// the terms of the object before and after the write. It may visit a feed twice.
func (i *feedIndex) forEachCandidate(r *record, visit func(*feed)) {
	visitAll := func(t term) {
		for _, f := range i.byTerm[t] {
			visit(f)
		}
	}
	everything := term{kind: termAny}
	visitAll(everything)
	if len(i.byTerm) == 0 || len(i.byTerm) == 1 && len(i.byTerm[everything]) > 0 {
		return // no feed has a term of an object
	}
	if r.New != nil {
		forEachTerm(r.New, visitAll)
	}
	if r.Old != nil && (r.New == nil || !sharedmaps.Share(r.Old, r.New)) {
		forEachTerm(r.Old, visitAll)
	}
}
