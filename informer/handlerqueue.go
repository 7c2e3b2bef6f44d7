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
		maxPending: maxPending, pending: make(map[listwatch.Key]*notification[T]),
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// push appends n or merges it into the pending notification of its key. It never blocks.
func (h *handlerQueue[T]) push(n notification[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.maxPending > 0 {
		h.append(&n)
		return
	}
	p := h.pending[n.key]
	if p == nil {
		h.pending[n.key] = &n
		h.append(&n)
		return
	}
	if !p.merge(n) {
		delete(h.pending, n.key)
		h.cancel(p)
	}
}

// pushMarker makes the handler's goroutine call f after it has handled everything that is
// in the queue now.
func (h *handlerQueue[T]) pushMarker(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.markers++
	h.append(&notification[T]{marker: f})
}

// resync pushes every item whose key has no pending notification. A queue that does not coalesce
// does not track keys, so it accepts a resync only if it is empty.
func (h *handlerQueue[T]) resync(s *Snapshot[T]) {
	if h.maxPending > 0 && h.len() > 0 {
		return
	}
	for item := range s.Items() {
		h.push(notification[T]{key: item.Key, old: item, now: item, resync: true})
	}
}

// append appends n without coalescing. The caller must hold h.mu.
func (h *handlerQueue[T]) append(n *notification[T]) {
	h.notifications = append(h.notifications, n)
	signal(h.ready)
}

// cancel marks p as canceled and leaves it in the slice, because finding it would take a
// scan. When most notifications are canceled, one scan removes them all, so that the memory
// for a handler that hangs is bounded by the number of keys. The caller must hold h.mu.
func (h *handlerQueue[T]) cancel(p *notification[T]) {
	*p = notification[T]{key: p.key}
	if h.canceled++; h.canceled < 64 || h.canceled < len(h.notifications)/2 {
		return
	}
	h.notifications = slices.DeleteFunc(slices.Delete(h.notifications, 0, h.first), (*notification[T]).isCanceled)
	h.first, h.canceled = 0, 0
}

// len returns the number of pending notifications.
func (h *handlerQueue[T]) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.notifications) - h.first - h.canceled - h.markers
}

// pop removes and returns the oldest notification, or nil if there is none.
func (h *handlerQueue[T]) pop() *notification[T] {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.first < len(h.notifications) {
		n := h.notifications[h.first]
		h.notifications[h.first] = nil
		h.first++
		if n.isCanceled() {
			h.canceled--
			continue
		}
		if n.marker != nil {
			h.markers--
		} else if h.pending[n.key] == n {
			delete(h.pending, n.key)
		}
		if h.first >= 64 && h.first >= len(h.notifications)/2 {
			h.notifications, h.first = slices.Delete(h.notifications, 0, h.first), 0
		}
		signal(h.room)
		return n
	}
	h.notifications, h.first = h.notifications[:0], 0
	// If the queue was large, probably because of an initial state, release its memory.
	if cap(h.notifications) > maxKeptMap {
		h.notifications, h.pending = nil, make(map[listwatch.Key]*notification[T])
	}
	return nil
}

// waitForRoom blocks while the queue is full. A queue that coalesces is never full.
func (h *handlerQueue[T]) waitForRoom(ctx context.Context, done <-chan struct{}) {
	for h.maxPending > 0 && h.len() >= h.maxPending {
		select {
		case <-h.room:
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

func (n *notification[T]) isCanceled() bool { return n.now == nil && n.marker == nil }

// merge changes n so that it also covers next, which is newer. It returns false if there is
// nothing to report, because the handler never saw the object.
func (n *notification[T]) merge(next notification[T]) bool {
	switch {
	case next.resync:
		return true // the pending notification covers the resync
	case next.deleted && n.old == nil:
		return false
	case next.deleted && n.oldFinal != nil:
		// The handler never saw the second object, so report only the deletion of the first one.
		n.now, n.oldFinal, n.deleted = n.oldFinal, nil, true
	case next.deleted:
		n.now, n.deleted, n.deletedAt, n.finalStateUnknown = next.now, true, next.deletedAt, next.finalStateUnknown
	case n.deleted:
		n.oldFinal, n.now, n.deleted = n.now, next.now, false
	default:
		n.now = next.now
	}
	n.resync = false
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
	c := Change[T]{
		Type: ChangeAdded, Key: n.key, Version: n.now.Version, New: n.now.Value, Initial: n.initial, Resync: n.resync,
	}
	if n.old != nil && n.oldFinal == nil {
		c.Type, c.Old = ChangeUpdated, n.old.Value
	}
	return yield(c)
}

// deletion returns the change that reports the deletion of n.old, the object that the handler
// knows. last is the final state of that object.
func (n *notification[T]) deletion(last *Item[T]) Change[T] {
	return Change[T]{
		Type: ChangeDeleted, Key: n.key, Version: n.deletedAt, Old: n.old.Value, New: last.Value,
		FinalStateUnknown: n.finalStateUnknown,
	}
}
