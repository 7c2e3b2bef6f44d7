package informer

import "github.com/listwatch/listwatch"

// An entry is what waits for one key.
type entry[T any] struct {
	// gone is the deletion of the object that is known; nil: it was not deleted. item is what came after it, nil if nothing. Invariant: one of
	// the two is there.
	deleted, item *Item[T]
	// kind is the type of the delta of item.
	itemType DeltaType
	// unknownState belongs to gone: the deletion was missed.
	finalStateUnknown bool
	// initial: the key belongs to the first Replace.
	initial bool
	// slab: the entry was made together with others and can't be kept alone.
	fromSlab bool
	// round is the last Replace that showed the key.
	lastReplace uint32
	// version is that of the newest change that the entry has taken in.
	newest listwatch.Version
	// since is the version of the oldest one; zero: it is not known, and nothing can be claimed before the entry is handled.
	oldest     listwatch.Version
	prev, next *entry[T]
}

func (e *entry[T]) key() listwatch.Key {
	if e.item != nil {
		return e.item.Key
	}
	return e.deleted.Key
}

// deltas returns e as the consumer sees it.
func (e *entry[T]) deltas() Deltas[T] {
	d := Deltas[T]{Key: e.key()}
	if e.deleted != nil {
		d.add(Delta[T]{Type: DeltaDeleted, Item: e.deleted, FinalStateUnknown: e.finalStateUnknown, Initial: e.initial})
	}
	if e.item != nil {
		d.add(Delta[T]{Type: e.itemType, Item: e.item, Initial: e.initial})
	}
	return d
}

// A queue is entries in order, each found by its key.
type entryQueue[T any] struct {
	head, tail *entry[T]
	entries    map[listwatch.Key]*entry[T]
	peak       int       // how many there were since the map was made
	freeList   *entry[T] // linked by next
	freeCount  int
}

const (
	maxFreeEntries = 64
	// keepMap is the size to which a map may have grown and be kept: maps don't shrink.
	maxKeptMap = 1024
)

func (q *entryQueue[T]) len() int { return len(q.entries) }

func (q *entryQueue[T]) get(key listwatch.Key) *entry[T] { return q.entries[key] }

// expect makes the map, for n keys to come.
func (q *entryQueue[T]) reserve(n int) {
	if q.entries == nil {
		q.entries = make(map[listwatch.Key]*entry[T], n)
	}
}

// push appends e, which is that of key.
func (q *entryQueue[T]) push(key listwatch.Key, e *entry[T]) {
	q.reserve(1)
	q.entries[key] = e
	q.peak = max(q.peak, len(q.entries))
	e.prev, e.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = e
	} else {
		q.head = e
	}
	q.tail = e
}

// pop takes the head out; there must be one.
func (q *entryQueue[T]) pop() *entry[T] {
	e := q.head
	q.remove(e)
	return e
}

func (q *entryQueue[T]) remove(e *entry[T]) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		q.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		q.tail = e.prev
	}
	e.prev, e.next = nil, nil
	delete(q.entries, e.key())
	if len(q.entries) == 0 && q.peak > maxKeptMap {
		q.entries, q.peak = nil, 0
	}
}

// make returns an empty entry that is not in the queue.
func (q *entryQueue[T]) alloc() *entry[T] {
	e := q.freeList
	if e == nil {
		return new(entry[T])
	}
	q.freeList, e.next = e.next, nil
	q.freeCount--
	return e
}

// free takes back an entry that is not in the queue any more.
func (q *entryQueue[T]) release(e *entry[T]) {
	if slab := e.fromSlab; slab || q.freeCount >= maxFreeEntries {
		*e = entry[T]{fromSlab: slab}
		return
	}
	*e = entry[T]{next: q.freeList}
	q.freeList = e
	q.freeCount++
}
