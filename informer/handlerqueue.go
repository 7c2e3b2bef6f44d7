package informer

import (
	"context"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
)

// An inbox holds what one handler is yet to be told. Where it compresses, there is at most one notice for each key.
type handlerQueue[T any] struct {
	// Immutable after construction.
	maxPending int           // how many notices there may be before the informer waits; zero: it compresses
	ready      chan struct{} // one place; filled when the inbox is not empty any more
	room       chan struct{} // one place; filled when there is room again

	mu sync.Mutex
	// Guarded by mu.
	notifications []*notification[T] // from first on
	first         int
	pending       map[listwatch.Key]*notification[T] // where it compresses
	canceled      int                                // how many of order were taken back
	markers       int                                // how many of order are marks
}

func newHandlerQueue[T any](bound int) *handlerQueue[T] {
	return &handlerQueue[T]{
		maxPending: bound, pending: make(map[listwatch.Key]*notification[T]), ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// push adds n, or joins it to what is pending for its key. It never blocks.
func (b *handlerQueue[T]) push(n notification[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.maxPending > 0 {
		b.append(&n)
		return
	}
	p := b.pending[n.key]
	if p == nil {
		b.pending[n.key] = &n
		b.append(&n)
		return
	}
	if !p.merge(n) {
		delete(b.pending, n.key)
		b.cancel(p)
	}
}

// mark has f called when everything that is in the inbox has been handled.
func (b *handlerQueue[T]) pushMarker(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.markers++
	b.append(&notification[T]{marker: f})
}

// resync pushes every item, but those that are pending. An inbox that doesn't compress knows no keys: it takes them where it is empty.
func (b *handlerQueue[T]) resync(s *Snapshot[T]) {
	if b.maxPending > 0 && b.len() > 0 {
		return
	}
	for item := range s.Items() {
		b.push(notification[T]{key: item.Key, old: item, now: item, resync: true})
	}
}

// append is called with mu held.
func (b *handlerQueue[T]) append(n *notification[T]) {
	b.notifications = append(b.notifications, n)
	signal(b.ready)
}

// takeBack is called with mu held. It marks p and leaves it where it is: looking for it would cost a walk. Where most were taken back, one
// walk drops them all, so that the memory of a handler that hangs is bounded by the keys.
func (b *handlerQueue[T]) cancel(p *notification[T]) {
	*p = notification[T]{key: p.key}
	if b.canceled++; b.canceled < 64 || b.canceled < len(b.notifications)/2 {
		return
	}
	b.notifications = slices.DeleteFunc(slices.Delete(b.notifications, 0, b.first), (*notification[T]).isCanceled)
	b.first, b.canceled = 0, 0
}

// len returns how many notices wait.
func (b *handlerQueue[T]) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.notifications) - b.first - b.canceled - b.markers
}

// take returns the oldest notice; nil: there is none.
func (b *handlerQueue[T]) pop() *notification[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.first < len(b.notifications) {
		n := b.notifications[b.first]
		b.notifications[b.first] = nil
		b.first++
		if n.isCanceled() {
			b.canceled--
			continue
		}
		if n.marker != nil {
			b.markers--
		} else if b.pending[n.key] == n {
			delete(b.pending, n.key)
		}
		if b.first >= 64 && b.first >= len(b.notifications)/2 {
			b.notifications, b.first = slices.Delete(b.notifications, 0, b.first), 0
		}
		signal(b.room)
		return n
	}
	b.notifications, b.first = b.notifications[:0], 0
	if cap(b.notifications) > maxKeptMap { // as much waited once: a first state
		b.notifications, b.pending = nil, make(map[listwatch.Key]*notification[T])
	}
	return nil
}

// waitForRoom waits until the inbox has room; one that compresses always has.
func (b *handlerQueue[T]) waitForRoom(ctx context.Context, done <-chan struct{}) {
	for b.maxPending > 0 && b.len() >= b.maxPending {
		select {
		case <-b.room:
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

// A notice is what a handler is yet to be told of one key.
type notification[T any] struct {
	key               listwatch.Key
	old               *Item[T] // what the handler knows; nil: nothing
	oldFinal          *Item[T] // the end of what it knows, where another object of that name came after it
	now               *Item[T] // what is there now; where deleted, the end of old
	deleted           bool
	initial           bool
	resync            bool
	deletedAt         listwatch.Version // when old was found gone
	finalStateUnknown bool              // that was by a list: how it ended was not seen

	marker func() // instead of all that: everything before it has been handled
}

// isVoid reports whether n was taken back.
func (n *notification[T]) isCanceled() bool { return n.now == nil && n.marker == nil }

// join makes of p what the handler is to be told where n follows. It reports false where that is nothing: it never knew the object.
func (p *notification[T]) merge(n notification[T]) bool {
	switch {
	case n.resync:
		return true // it is told of the key anyway
	case n.deleted && p.old == nil:
		return false
	case n.deleted && p.oldFinal != nil:
		// The object in between was never seen: what is told is the end of the one that the handler knows.
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

// changes calls yield with what n says, at most two changes; false: yield did.
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

// disappeared is the change that ends old.
func (n *notification[T]) deletion(last *Item[T]) Change[T] {
	return Change[T]{
		Type: ChangeDeleted, Key: n.key, Version: n.deletedAt, Old: n.old.Value, New: last.Value, FinalStateUnknown: n.finalStateUnknown,
	}
}
