package history

import (
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

// feeds are the feeds of a log and the index that finds those that a write may concern. Guarded by Log.mu.
type feeds struct {
	bySelection map[selectionKey]*feed
	index       map[term][]*feed
	idle        []idleFeed // in order of time
	watchers    int
	touched     []*feed // kept between calls of Append for its memory
}

type idleFeed struct {
	feed  *feed
	since time.Time
}

// feedIdle is how long a feed without watchers stays, so that one that comes back resumes in it.
const feedIdle = 30 * time.Second

func (f *feeds) init() {
	f.bySelection = make(map[selectionKey]*feed)
	f.index = make(map[term][]*feed)
}

// join returns the feed of s for one more watcher. A new feed begins at now.
func (f *feeds) join(s selection, now listwatch.Version) *feed {
	key := s.key()
	found := f.bySelection[key]
	if found == nil {
		found = newFeed(s, now)
		f.bySelection[key] = found
		for _, t := range found.terms {
			found.slots = append(found.slots, len(f.index[t]))
			f.index[t] = append(f.index[t], found)
		}
	}
	found.watchers++
	f.watchers++
	return found
}

func (f *feeds) leave(left *feed, now time.Time) {
	f.watchers--
	if left.watchers--; left.watchers == 0 {
		f.idle = append(f.idle, idleFeed{left, now})
		left.idleSince++
	}
	f.sweep(now)
}

// sweep removes the feeds that have been without a watcher for long enough.
func (f *feeds) sweep(now time.Time) {
	for len(f.idle) > 0 && now.Sub(f.idle[0].since) >= feedIdle {
		old := f.idle[0].feed
		f.idle[0].feed = nil
		f.idle = f.idle[1:]
		// A feed that was joined and left again stands in the list once more, and that entry will count.
		if old.idleSince--; old.idleSince == 0 && old.watchers == 0 {
			f.remove(old)
		}
	}
}

func (f *feeds) remove(old *feed) {
	delete(f.bySelection, old.selection.key())
	for i, t := range old.terms {
		bucket := f.index[t]
		end := len(bucket) - 1
		moved := bucket[end]
		bucket[old.slots[i]] = moved
		moved.slots[slices.Index(moved.terms, t)] = old.slots[i]
		bucket[end] = nil
		if f.index[t] = bucket[:end]; end == 0 {
			delete(f.index, t)
		}
	}
}

// offer adds r, whose number is given, to the feeds that it concerns, and returns touched with those that it is the first for.
func (f *feeds) offer(r *record, number uint64, touched []*feed) []*feed {
	f.candidates(r, func(t term) {
		for _, c := range f.index[t] {
			if c.offered == number {
				continue
			}
			c.offered = number
			if c.offer(r) {
				touched = append(touched, c)
			}
		}
	})
	return touched
}

// trim takes r, the oldest record, out of the feeds that it concerned. The index leads to them as it did when r was appended.
func (f *feeds) trim(r *record) {
	f.candidates(r, func(t term) {
		for _, c := range f.index[t] {
			c.trim(r)
		}
	})
}

// candidates calls visit with every term under which a feed may be filed that r concerns: what the object had before counts as much
// as what it has now. A term may come twice.
func (f *feeds) candidates(r *record, visit func(term)) {
	visit(term{kind: termAll})
	if r.new != nil {
		termsOf(r.new, visit)
	}
	if r.old != nil {
		termsOf(r.old, visit)
	}
}
