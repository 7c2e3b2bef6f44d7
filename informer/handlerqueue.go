package informer

import (
	"context"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
)

// A handlerQueue holds the notifications that one handler has not received yet. If
// maxPending is zero, the queue coalesces notifications, so that it holds at most one per
// key.
type handlerQueue[T any] struct {
	// Immutable after construction. maxPending is the number of notifications at which the informer
	// blocks; if zero, the queue coalesces.
	maxPending int
	// ready has capacity 1. It holds a token when the queue may have become non-empty.
	ready chan struct{}
	// room has capacity 1. It holds a token when the queue may no longer be full.
	room chan struct{}

	mu sync.Mutex
	// Guarded by mu.

	// notifications holds the queue, which starts at notifications[first].
	notifications []*notification[T]
	first         int
	// pending holds the queued notification of each key. It is used only if the queue coalesces.
	pending map[listwatch.Key]*notification[T]
	// canceled is the number of canceled notifications in the queue.
	canceled int
	// markers is the number of queued notifications that only call a function; see pushMarker.
	markers int
}

func newHandlerQueue[T any](maxPending int) *handlerQueue[T] {
	return &handlerQueue[T]{
		maxPending: maxPending, pending: make(map[listwatch.Key]*notification[T]), ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// push appends n or merges it into the pending notification of its key. It never blocks.
func (q *handlerQueue[T]) push(n notification[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.maxPending > 0 {
		q.append(&n)
		return
	}
	p := q.pending[n.key]
	if p == nil {
		q.pending[n.key] = &n
		q.append(&n)
		return
	}
	if !p.merge(n) {
		delete(q.pending, n.key)
		q.cancel(p)
	}
}

// pushMarker makes the handler's goroutine call f after it has handled everything that is
// in the queue now.
func (q *handlerQueue[T]) pushMarker(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.markers++
	q.append(&notification[T]{marker: f})
}

// resync pushes every item whose key has no pending notification. A queue that does not coalesce
// does not track keys, so it accepts a resync only if it is empty.
func (q *handlerQueue[T]) resync(s *Snapshot[T]) {
	if q.maxPending > 0 && q.len() > 0 {
		return
	}
	for item := range s.Items() {
		q.push(notification[T]{key: item.Key, old: item, now: item, resync: true})
	}
}

// append appends n without coalescing. The caller must hold q.mu.
func (q *handlerQueue[T]) append(n *notification[T]) {
	q.notifications = append(q.notifications, n)
	signal(q.ready)
}

// cancel marks p as canceled and leaves it in the slice, because finding it would take a
// scan. When most notifications are canceled, one scan removes them all, so that the memory
// for a handler that hangs is bounded by the number of keys. The caller must hold q.mu.
func (q *handlerQueue[T]) cancel(p *notification[T]) {
	*p = notification[T]{key: p.key}
	if q.canceled++; q.canceled < 64 || q.canceled < len(q.notifications)/2 {
		return
	}
	q.notifications = slices.DeleteFunc(slices.Delete(q.notifications, 0, q.first), (*notification[T]).isCanceled)
	q.first, q.canceled = 0, 0
}

// len returns the number of pending notifications.
func (q *handlerQueue[T]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.notifications) - q.first - q.canceled - q.markers
}

// pop removes and returns the oldest notification, or nil if there is none.
func (q *handlerQueue[T]) pop() *notification[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.first < len(q.notifications) {
		n := q.notifications[q.first]
		q.notifications[q.first] = nil
		q.first++
		if n.isCanceled() {
			q.canceled--
			continue
		}
		if n.marker != nil {
			q.markers--
		} else if q.pending[n.key] == n {
			delete(q.pending, n.key)
		}
		if q.first >= 64 && q.first >= len(q.notifications)/2 {
			q.notifications, q.first = slices.Delete(q.notifications, 0, q.first), 0
		}
		signal(q.room)
		return n
	}
	q.notifications, q.first = q.notifications[:0], 0
	// If the queue was large, probably because of an initial state, release its memory.
	if cap(q.notifications) > maxKeptMap {
		q.notifications, q.pending = nil, make(map[listwatch.Key]*notification[T])
	}
	return nil
}

// waitForRoom blocks while the queue is full. A queue that coalesces is never full.
func (q *handlerQueue[T]) waitForRoom(ctx context.Context, done <-chan struct{}) {
	for q.maxPending > 0 && q.len() >= q.maxPending {
		select {
		case <-q.room:
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// A notification is the pending change of one key for one handler.
type notification[T any] struct {
	key listwatch.Key
	// old is the state that the handler knows. It is nil if the handler does not know the object.
	old *Item[T]
	// If the object of old was deleted and a new object has its name, oldFinal is the final state
	// of the deleted object.
	oldFinal *Item[T]
	// now is the current state or, if deleted is true, the final state of the deleted object.
	now     *Item[T]
	deleted bool
	initial bool
	resync  bool
	// deletedAt is the version of the deletion.
	deletedAt listwatch.Version
	// finalStateUnknown is true if the deletion was inferred from a list.
	finalStateUnknown bool

	// If marker is set, the notification has no change. The handler's goroutine then only calls
	// marker.
	marker func()
}

// isCanceled reports whether n was canceled.
func (n *notification[T]) isCanceled() bool { return n.now == nil && n.marker == nil }

// merge changes p so that it also covers n, which is newer. It returns false if there is
// nothing to report, because the handler never saw the object.
func (p *notification[T]) merge(n notification[T]) bool {
	switch {
	case n.resync:
		return true // the pending notification covers the resync
	case n.deleted && p.old == nil:
		return false
	case n.deleted && p.oldFinal != nil:
		// The handler never saw the second object, so report only the deletion of the first one.
		p.now, p.oldFinal, p.deleted = p.oldFinal, nil, true
	case n.deleted:
		p.now, p.deleted, p.deletedAt, p.finalStateUnknown = n.now, true, n.deletedAt, n.finalStateUnknown
	case p.deleted:
		p.oldFinal, p.now, p.deleted = p.now, n.now, false
	default:
		p.now = n.now
	}
	p.resync = false
	return true
}

// changes calls yield with the one or two changes that n represents. It returns false if
// yield returned false.
func (n *notification[T]) changes(yield func(Change[T]) bool) bool {
	if n.oldFinal != nil && !yield(n.deletion(n.oldFinal)) {
		return false
	}
	if n.deleted {
		return yield(n.deletion(n.now))
	}
	c := Change[T]{Type: ChangeAdded, Key: n.key, Version: n.now.Version, New: n.now.Value, Initial: n.initial, Resync: n.resync}
	if n.old != nil && n.oldFinal == nil {
		c.Type, c.Old = ChangeUpdated, n.old.Value
	}
	return yield(c)
}

// deletion returns the change that reports that n.old, the object that the handler knows, was
// deleted. The final state of that object is in last.
func (n *notification[T]) deletion(last *Item[T]) Change[T] {
	return Change[T]{
		Type: ChangeDeleted, Key: n.key, Version: n.deletedAt, Old: n.old.Value, New: last.Value, FinalStateUnknown: n.finalStateUnknown,
	}
}
