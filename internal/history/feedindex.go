package history

import (
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

// A feedIndex holds the feeds of a log, and finds the feeds that a write may concern. It is
// guarded by Log.mu.
type feedIndex struct {
	bySelection map[selectionKey]*feed
	byTerm      map[term][]*feed
	// idle has an entry for each time that a feed lost its last watcher, oldest first.
	idle     []idleFeed
	watchers int
	// unpublished holds the feeds with nodes that readers do not see before the call of publish.
	unpublished []*feed
	log         *Log // immutable
}

// An indexEntry holds the feedIndex's data about one feed.
type indexEntry struct {
	terms       []term // the terms that the feed is indexed by
	slots       []int  // the index of the feed in byTerm[terms[i]]
	watchers    int
	idleEntries int    // the number of entries of the feed in feedIndex.idle
	offered     uint64 // the number of the last record offered to the feed
}

type idleFeed struct {
	feed  *feed
	since time.Time
}

// feedIdleTimeout is the time after which a feed without watchers is removed. A watcher
// that reconnects earlier resumes in the same feed.
const feedIdleTimeout = 30 * time.Second

// newFeedIndex returns the empty index of l.
func newFeedIndex(l *Log) feedIndex {
	return feedIndex{log: l, bySelection: make(map[selectionKey]*feed), byTerm: make(map[term][]*feed)}
}

// join adds a watcher to the feed of s and returns the feed. A new feed starts at the given
// version.
func (i *feedIndex) join(s selection, start listwatch.Version) *feed {
	key := s.key()
	f := i.bySelection[key]
	if f == nil {
		f = newFeed(i.log, s, start)
		i.bySelection[key] = f
		f.entry.terms = s.terms()
		for _, t := range f.entry.terms {
			f.entry.slots = append(f.entry.slots, len(i.byTerm[t]))
			i.byTerm[t] = append(i.byTerm[t], f)
		}
	}
	f.entry.watchers++
	i.watchers++
	return f
}

// leave removes a watcher from f.
func (i *feedIndex) leave(f *feed, now time.Time) {
	i.watchers--
	if f.entry.watchers--; f.entry.watchers == 0 {
		i.idle = append(i.idle, idleFeed{f, now})
		f.entry.idleEntries++
	}
	i.removeIdle(now)
}

// removeIdle removes the feeds that have had no watcher for feedIdleTimeout.
func (i *feedIndex) removeIdle(now time.Time) {
	for len(i.idle) > 0 && now.Sub(i.idle[0].since) >= feedIdleTimeout {
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
	f.chain.dropFrames()
	delete(i.bySelection, f.selection.key())
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

// offer appends r, which has the given number, to the feeds that the record concerns. Readers do
// not see the record before the call of publish.
func (i *feedIndex) offer(r *record, number uint64) {
	i.forEachCandidate(r, func(f *feed) {
		if f.entry.offered == number {
			return
		}
		f.entry.offered = number
		if t := f.selection.transition(r); t != outside && f.chain.append(r, t) {
			i.unpublished = append(i.unpublished, f)
		}
	})
}

// publish makes the offered records visible, and moves the cursors that wait for them to the waker
// w.
func (i *feedIndex) publish(w *waker) {
	for _, f := range i.unpublished {
		f.chain.publish()
		w.add(f.wakeups.take())
	}
	clear(i.unpublished)
	i.unpublished = i.unpublished[:0]
}

// drop removes r, the oldest record, from the feeds that the record concerns.
func (i *feedIndex) drop(r *record) {
	i.forEachCandidate(r, func(f *feed) { f.chain.drop(r) })
}

// forEachCandidate calls visit with every feed that r may concern. It finds the feeds by
// the terms of the object before and after the write. It may visit a feed twice.
func (i *feedIndex) forEachCandidate(r *record, visit func(*feed)) {
	visitAll := func(t term) {
		for _, f := range i.byTerm[t] {
			visit(f)
		}
	}
	visitAll(term{kind: termAny})
	if r.New != nil {
		forEachTerm(r.New, visitAll)
	}
	if r.Old != nil {
		forEachTerm(r.Old, visitAll)
	}
}
