package informer

import "github.com/listwatch/listwatch"

// An entry is what waits for one key.
type entry[T any] struct {
	// gone is the deletion of the object that is known; nil: it was not deleted. item is what came after it, nil if nothing. Invariant: one of
	// the two is there.
	gone, item *Item[T]
	// kind is the type of the delta of item.
	kind DeltaType
	// unknownState belongs to gone: the deletion was missed.
	unknownState bool
	// initial: the key belongs to the first Replace.
	initial bool
	// slab: the entry was made together with others and can't be kept alone.
	slab bool
	// round is the last Replace that showed the key.
	round uint32
	// version is that of the newest change that the entry has taken in.
	version listwatch.Version
	// since is the version of the oldest one; zero: it is not known, and nothing can be claimed before the entry is handled.
	since      listwatch.Version
	prev, next *entry[T]
}

func (e *entry[T]) key() listwatch.Key {
	if e.item != nil {
		return e.item.Key
	}
	return e.gone.Key
}

// deltas returns e as the consumer sees it.
func (e *entry[T]) deltas() Deltas[T] {
	d := Deltas[T]{Key: e.key()}
	if e.gone != nil {
		d.add(Delta[T]{Type: DeltaDeleted, Item: e.gone, FinalStateUnknown: e.unknownState, Initial: e.initial})
	}
	if e.item != nil {
		d.add(Delta[T]{Type: e.kind, Item: e.item, Initial: e.initial})
	}
	return d
}

// A queue is entries in order, each found by its key.
type queue[T any] struct {
	head, tail *entry[T]
	entries    map[listwatch.Key]*entry[T]
	most       int       // how many there were since the map was made
	spare      *entry[T] // linked by next
	spares     int
}

const (
	mostSpares = 64
	// keepMap is the size to which a map may have grown and be kept: maps don't shrink.
	keepMap = 1024
)

func (q *queue[T]) len() int { return len(q.entries) }

func (q *queue[T]) get(key listwatch.Key) *entry[T] { return q.entries[key] }

// expect makes the map, for n keys to come.
func (q *queue[T]) expect(n int) {
	if q.entries == nil {
		q.entries = make(map[listwatch.Key]*entry[T], n)
	}
}

// push appends e, which is that of key.
func (q *queue[T]) push(key listwatch.Key, e *entry[T]) {
	q.expect(1)
	q.entries[key] = e
	q.most = max(q.most, len(q.entries))
	e.prev, e.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = e
	} else {
		q.head = e
	}
	q.tail = e
}

// pop takes the head out; there must be one.
func (q *queue[T]) pop() *entry[T] {
	e := q.head
	q.remove(e)
	return e
}

func (q *queue[T]) remove(e *entry[T]) {
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
	if len(q.entries) == 0 && q.most > keepMap {
		q.entries, q.most = nil, 0
	}
}

// make returns an empty entry that is not in the queue.
func (q *queue[T]) make() *entry[T] {
	e := q.spare
	if e == nil {
		return new(entry[T])
	}
	q.spare, e.next = e.next, nil
	q.spares--
	return e
}

// free takes back an entry that is not in the queue any more.
func (q *queue[T]) free(e *entry[T]) {
	if slab := e.slab; slab || q.spares >= mostSpares {
		*e = entry[T]{slab: slab}
		return
	}
	*e = entry[T]{next: q.spare}
	q.spare = e
	q.spares++
}
