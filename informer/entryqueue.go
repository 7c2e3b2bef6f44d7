package informer

import "github.com/listwatch/listwatch"

// An entry holds the pending changes of one key.
type entry[T any] struct {
	// deleted is the deletion of the object that the consumer knows, or nil. item is the current
	// state, or nil if the object does not exist. Invariant: at least one of these two is not nil.
	deleted, item *Item[T]
	// itemType is the type of the delta for item.
	itemType DeltaType
	// finalStateUnknown is true if deleted was inferred from a list.
	finalStateUnknown bool
	// initial is true if the key belongs to the first Replace.
	initial bool
	// fromSlab is true if the entry was allocated together with others. Such an entry is not
	// reused, because it would keep the whole slab in memory.
	fromSlab bool
	// lastReplace is the number of the last Replace that contained the key.
	lastReplace uint32
	// newest is the version of the newest change in the entry.
	newest listwatch.Version
	// oldest is the version of the oldest change in the entry. Zero means unknown: the
	// queue's version cannot advance until the entry is handled.
	oldest     listwatch.Version
	prev, next *entry[T]
}

func (e *entry[T]) key() listwatch.Key {
	if e.item != nil {
		return e.item.Key
	}
	return e.deleted.Key
}

// deltas converts e to the deltas that the consumer receives.
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

// An entryQueue is a linked list of entries with an index by key.
type entryQueue[T any] struct {
	head, tail *entry[T]
	entries    map[listwatch.Key]*entry[T]
	// peak is the largest number of entries since the map was made.
	peak int
	// freeList is the head of a list of entries that are kept for reuse. next links the list.
	freeList  *entry[T]
	freeCount int
}

const (
	maxFreeEntries = 64
	// maxKeptMap is the size up to which an emptied map or slice is kept for reuse. A larger one
	// is dropped, because its memory never shrinks.
	maxKeptMap = 1024
)

func (e *entryQueue[T]) len() int { return len(e.entries) }

func (e *entryQueue[T]) get(key listwatch.Key) *entry[T] { return e.entries[key] }

// reserve makes the map, with room for n keys, if there is no map yet.
func (e *entryQueue[T]) reserve(n int) {
	if e.entries == nil {
		e.entries = make(map[listwatch.Key]*entry[T], n)
	}
}

// push appends an entry under key.
func (e *entryQueue[T]) push(key listwatch.Key, added *entry[T]) {
	e.reserve(1)
	e.entries[key] = added
	e.peak = max(e.peak, len(e.entries))
	added.prev, added.next = e.tail, nil
	if e.tail != nil {
		e.tail.next = added
	} else {
		e.head = added
	}
	e.tail = added
}

// pop removes and returns the head. The queue must not be empty.
func (e *entryQueue[T]) pop() *entry[T] {
	old := e.head
	e.remove(old)
	return old
}

func (e *entryQueue[T]) remove(old *entry[T]) {
	if old.prev != nil {
		old.prev.next = old.next
	} else {
		e.head = old.next
	}
	if old.next != nil {
		old.next.prev = old.prev
	} else {
		e.tail = old.prev
	}
	old.prev, old.next = nil, nil
	delete(e.entries, old.key())
	if len(e.entries) == 0 && e.peak > maxKeptMap {
		e.entries, e.peak = nil, 0
	}
}

// alloc returns an empty entry that is not in the queue.
func (e *entryQueue[T]) alloc() *entry[T] {
	old := e.freeList
	if old == nil {
		return new(entry[T])
	}
	e.freeList, old.next = old.next, nil
	e.freeCount--
	return old
}

// release clears an entry that is no longer in the queue. It keeps the entry for alloc, unless the
// entry is from a slab or enough entries are kept.
func (e *entryQueue[T]) release(old *entry[T]) {
	if slab := old.fromSlab; slab || e.freeCount >= maxFreeEntries {
		*old = entry[T]{fromSlab: slab}
		return
	}
	*old = entry[T]{next: e.freeList}
	e.freeList = old
	e.freeCount++
}
