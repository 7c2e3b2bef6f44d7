package history

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// A matcher offers records to the feeds for which the index is of no use: feeds of selectors
// without an equality, such as app!=web, and feeds that share their term with too many others. It
// runs on a goroutine of its own while it has work, so that a write does not wait until thousands
// of selections were compared with the object. A reader that is ahead of the matcher offers the
// records to its feed itself, so it sees every event as early as the readers of indexed feeds.
type matcher struct {
	log   *Log         // immutable
	count atomic.Int64 // len(feeds)
	nodes atomic.Int64 // the nodes of all feeds
	// reduced is the memory of the reduced objects of all feeds.
	reduced atomic.Int64
	state   atomic.Int32 // one of matcherIdle, matcherRunning and matcherRepeating

	mu sync.Mutex // may be acquired while Log.mu is held
	// Guarded by mu.
	feeds []*feed
	// All records with numbers below offered were offered to all feeds.
	offered uint64
	moved   bool // a feed has changed its index since the goroutine began to visit all feeds
}

// matched is the matcher's data about a feed.
type matched struct {
	// next is the number of the first record that was not offered to the feed. It is set while
	// matcher.mu is held.
	next atomic.Uint64
	// slot is the index of the feed in matcher.feeds, or removedSlot if its last watcher has left.
	// It is guarded by matcher.mu.
	slot int
}

const removedSlot = -1

// The values of matcher.state.
const (
	matcherIdle      int32 = iota
	matcherRunning         // a goroutine visits all feeds
	matcherRepeating       // it will visit all feeds once more
)

const (
	// matchFeeds and matchRecords limit the feeds that a matcher visits, and the records that it
	// offers to them, while it holds its mutex.
	matchFeeds   = 16
	matchRecords = 16
)

// add adds f, a new feed. The next record will be the first that m offers to it. Log.mu must be
// held.
func (m *matcher) add(f *feed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f.chain.countIn(&m.reduced)
	f.matched = &matched{slot: len(m.feeds)}
	f.matched.next.Store(m.log.records.next)
	m.feeds = append(m.feeds, f)
	m.count.Store(int64(len(m.feeds)))
}

func (m *matcher) remove(f *feed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f.chain.dropAll()
	m.nodes.Add(-int64(f.chain.len))
	slot, last := f.matched.slot, len(m.feeds)-1
	m.feeds[slot] = m.feeds[last]
	m.feeds[slot].matched.slot = slot
	f.matched.slot = removedSlot
	m.feeds[last] = nil
	m.feeds = m.feeds[:last]
	m.count.Store(int64(last))
	// A goroutine that has passed slot, but not last, would miss the feed that moved.
	m.moved = true
	m.state.CompareAndSwap(matcherRunning, matcherRepeating)
}

// restart empties the chain of f. The chain continues after v, the version of the newest record.
// Log.mu must be held.
func (m *matcher) restart(f *feed, v listwatch.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes.Add(-int64(f.chain.len))
	f.chain.restart(v, m.log.records.next)
	f.matched.next.Store(m.log.records.next)
}

// start makes a goroutine offer the new records to all feeds. It does not wait.
func (m *matcher) start() {
	for m.count.Load() > 0 {
		s := m.state.Load()
		if s == matcherRepeating {
			return
		}
		if m.state.CompareAndSwap(s, s+1) {
			if s == matcherIdle {
				go m.run() // returns when all feeds have been visited
			}
			return
		}
	}
}

func (m *matcher) run() {
	for {
		m.visitAll()
		if m.state.CompareAndSwap(matcherRunning, matcherIdle) {
			return
		}
		m.state.Store(matcherRunning)
	}
}

// visitAll offers the records appended before the call to all feeds.
func (m *matcher) visitAll() {
	m.mu.Lock()
	m.moved = false
	m.mu.Unlock()
	end := m.log.records.published.Load()
	for i, n := 0, 1; n > 0; {
		var complete bool
		n, complete = m.visit(func() []*feed { return m.feeds[min(i, len(m.feeds)):min(i+matchFeeds, len(m.feeds))] })
		if complete {
			i += n
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.moved {
		m.offered = max(m.offered, end)
	}
}

// visit offers a few records to the feeds that choose returns. It returns the number of these
// feeds, and whether they have seen all records. It calls choose while m.mu is held.
func (m *matcher) visit(choose func() []*feed) (feeds int, complete bool) {
	m.log.mu.Lock()
	m.mu.Lock()
	part := choose()
	next := m.take(part, matchRecords)
	m.log.mu.Unlock()
	next.offer(part)
	feeds = len(part)
	m.mu.Unlock()
	m.log.waker.start()
	return feeds, next.complete
}

// catchUp offers the records to f that were not offered yet. Log.mu and m.mu must be held.
func (m *matcher) catchUp(f *feed) {
	if f.matched.next.Load() < m.log.records.next {
		m.offer(f, math.MaxInt)
		m.log.waker.start()
	}
}

// offer offers about count records to f. Log.mu and m.mu must be held.
func (m *matcher) offer(f *feed, count int) {
	part := []*feed{f}
	next := m.take(part, count)
	next.offer(part)
}

// offerOldest ensures that the oldest record was offered to all feeds, because it is about to be
// dropped. It has work only if the matcher is behind by the whole history. Log.mu must be held.
func (m *matcher) offerOldest() {
	oldest := m.log.records.first()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offered > oldest {
		return
	}
	for _, f := range m.feeds {
		if f.matched.next.Load() <= oldest {
			m.offer(f, 1)
		}
	}
	m.offered = oldest + 1
}

// A matchBatch holds records to offer to feeds.
type matchBatch struct {
	matcher  *matcher
	records  []*record
	first    uint64 // the number of the oldest retained record
	complete bool   // the log has no later records
}

// take returns about count records that some feed of part was not offered yet. Log.mu and m.mu must
// be held.
func (m *matcher) take(part []*feed, count int) matchBatch {
	records := &m.log.records
	b, from := matchBatch{matcher: m, first: records.first()}, records.next
	for _, f := range part {
		from = min(from, f.matched.next.Load())
	}
	b.records = records.appendGroups(nil, from, count)
	b.complete = from+uint64(len(b.records)) == records.next
	return b
}

// offer appends the records to the feeds of part that they concern. matcher.mu must be held.
func (b *matchBatch) offer(part []*feed) {
	limit := b.matcher.log.feeds.limits.nodesPerFeed
	for _, f := range part {
		next := f.matched.next.Load()
		for _, r := range b.records {
			if r.handle.number < next {
				continue
			}
			next = r.handle.number + 1
			if t := f.selection.effect(r); t != 0 && f.matched.slot != removedSlot {
				f.chain.append(r, t)
			}
		}
		before := f.chain.len
		added := f.chain.publish()
		for f.chain.len > limit && f.chain.drop(math.MaxUint64) || f.chain.drop(b.first) {
		}
		b.matcher.nodes.Add(int64(f.chain.len - before))
		// Readers that see the new value of next must see the nodes as well.
		if f.matched.next.Store(next); added > 0 {
			b.matcher.log.waker.add(f.wakeups.take())
		}
	}
}
