package informer

import (
	"context"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
)

// An inbox holds what one handler is yet to be told. Where it compresses, there is at most one notice for each key.
type inbox[T any] struct {
	// Immutable after construction.
	bound int           // how many notices there may be before the informer waits; zero: it compresses
	ready chan struct{} // one place; filled when the inbox is not empty any more
	room  chan struct{} // one place; filled when there is room again

	mu sync.Mutex
	// Guarded by mu.
	order   []*notice[T] // from first on
	first   int
	pending map[listwatch.Key]*notice[T] // where it compresses
	void    int                          // how many of order were taken back
	marks   int                          // how many of order are marks
}

func newInbox[T any](bound int) *inbox[T] {
	return &inbox[T]{
		bound: bound, pending: make(map[listwatch.Key]*notice[T]), ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// push adds n, or joins it to what is pending for its key. It never blocks.
func (b *inbox[T]) push(n notice[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound > 0 {
		b.append(&n)
		return
	}
	p := b.pending[n.key]
	if p == nil {
		b.pending[n.key] = &n
		b.append(&n)
		return
	}
	if !p.join(n) {
		delete(b.pending, n.key)
		b.takeBack(p)
	}
}

// mark has f called when everything that is in the inbox has been handled.
func (b *inbox[T]) mark(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marks++
	b.append(&notice[T]{mark: f})
}

// resync pushes every item, but those that are pending. An inbox that doesn't compress knows no keys: it takes them where it is empty.
func (b *inbox[T]) resync(s *Snapshot[T]) {
	if b.bound > 0 && b.len() > 0 {
		return
	}
	for item := range s.Items() {
		b.push(notice[T]{key: item.Key, old: item, now: item, resync: true})
	}
}

// append is called with mu held.
func (b *inbox[T]) append(n *notice[T]) {
	b.order = append(b.order, n)
	signal(b.ready)
}

// takeBack is called with mu held. It marks p and leaves it where it is: looking for it would cost a walk. Where most were taken back, one
// walk drops them all, so that the memory of a handler that hangs is bounded by the keys.
func (b *inbox[T]) takeBack(p *notice[T]) {
	*p = notice[T]{key: p.key}
	if b.void++; b.void < 64 || b.void < len(b.order)/2 {
		return
	}
	b.order = slices.DeleteFunc(slices.Delete(b.order, 0, b.first), (*notice[T]).isVoid)
	b.first, b.void = 0, 0
}

// len returns how many notices wait.
func (b *inbox[T]) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.order) - b.first - b.void - b.marks
}

// take returns the oldest notice; nil: there is none.
func (b *inbox[T]) take() *notice[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.first < len(b.order) {
		n := b.order[b.first]
		b.order[b.first] = nil
		b.first++
		if n.isVoid() {
			b.void--
			continue
		}
		if n.mark != nil {
			b.marks--
		} else if b.pending[n.key] == n {
			delete(b.pending, n.key)
		}
		if b.first >= 64 && b.first >= len(b.order)/2 {
			b.order, b.first = slices.Delete(b.order, 0, b.first), 0
		}
		signal(b.room)
		return n
	}
	b.order, b.first = b.order[:0], 0
	if cap(b.order) > keepMap { // as much waited once: a first state
		b.order, b.pending = nil, make(map[listwatch.Key]*notice[T])
	}
	return nil
}

// waitForRoom waits until the inbox has room; one that compresses always has.
func (b *inbox[T]) waitForRoom(ctx context.Context, done <-chan struct{}) {
	for b.bound > 0 && b.len() >= b.bound {
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
