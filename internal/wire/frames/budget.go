package frames

import "sync"

// A Budget limits the total bytes that many [Frames] keep. When the limit is exceeded, it
// empties the Frames that were filled first. It is safe for concurrent use.
type Budget struct {
	max int64

	mu sync.Mutex
	// Guarded by mu.
	added uint64    // the number of frames ever added
	used  int64     // the bytes kept; may be inexact while a frame is added or dropped
	queue []*Frames // in the order in which they were filled; the entries of queue[:head] are nil
	head  int
	empty int // approximate number of entries that Drop has emptied
}

// NewBudget returns a Budget of max bytes. If max is zero, no frame is kept. A negative max
// means no limit.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Used returns the bytes kept now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Added returns the number of frames that were ever added.
func (b *Budget) Added() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.added
}

// release subtracts n bytes of Frames that were dropped.
func (b *Budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.empty++
	if b.empty > 64 && b.empty > (len(b.queue)-b.head)/2 {
		b.compact()
	}
}

// compact removes empty Frames from the queue, because an entry of the queue keeps its
// event in memory.
func (b *Budget) compact() {
	var kept []*Frames
	for _, f := range b.queue[b.head:] {
		if !f.isEmpty() {
			kept = append(kept, f)
		}
	}
	b.queue, b.head, b.empty = kept, 0, 0
}

// add counts n bytes that f now keeps. first is true if f was empty before.
func (b *Budget) add(f *Frames, n int, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += int64(n)
	b.added++
	if b.max < 0 {
		return
	}
	if first {
		b.queue = append(b.queue, f)
	}
	for b.used > b.max && b.head < len(b.queue) {
		b.used -= b.queue[b.head].evict()
		b.queue[b.head] = nil
		b.head++
	}
	if b.head > 64 && b.head > len(b.queue)/2 {
		b.compact()
	}
}
