package client

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A watcher is the queue between the reader of a watch and the goroutine of its Reflector. The
// goroutine waits while the queue is full, so a slow reader slows down the server.
type watcher struct {
	// Immutable after construction.

	// cancel ends the goroutine.
	cancel context.CancelFunc
	// ready has capacity 1. It holds a token when the queue has an event or has ended.
	ready chan struct{}
	// room has capacity 1. It holds a token when the queue has room again.
	room chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	queue []listwatch.Event
	// bytes is the size of the objects in the queue.
	bytes int
	// isOpen is true once Watch has returned the watcher. Before that, there is no reader who could
	// make room.
	isOpen bool
	// taken is true if the reader has received an event.
	taken bool
	// err is the error that Next returns after the queued events. It is nil while the watch is
	// open.
	err error
}

var _ reflector.Releaser = (*watcher)(nil)

// The limits of the queue. A batch of events is queued as a whole, so the last batch may exceed
// them.
const (
	queueEvents = 256
	queueBytes  = 1 << 20
)

func newWatcher(cancel context.CancelFunc) *watcher {
	return &watcher{cancel: cancel, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Next implements [listwatch.Watcher]. It returns queued events even if ctx has ended.
func (w *watcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if n, err := w.take(dst); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (w *watcher) take(dst []listwatch.Event) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return 0, w.err
	}
	wasFull := w.isFull()
	n := copy(dst, w.queue)
	for i := range n {
		w.bytes -= len(dst[i].Object.Data)
	}
	w.queue = slices.Delete(w.queue, 0, n)
	w.taken = w.taken || n > 0
	if wasFull && !w.isFull() {
		signal(w.room)
	}
	return n, nil
}

// isFull reports whether the queue has reached a limit. The caller must hold w.mu.
func (w *watcher) isFull() bool { return len(w.queue) >= queueEvents || w.bytes >= queueBytes }

// open lets waitForRoom wait.
func (w *watcher) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isOpen = true
}

// push appends e to the queue, even if it is full.
func (w *watcher) push(e listwatch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return // the watcher is closed and drops e
	}
	w.queue = append(w.queue, e)
	w.bytes += len(e.Object.Data)
	if len(w.queue) == 1 {
		signal(w.ready)
	}
}

// waitForRoom waits until the queue is not full, or the watcher is closed.
func (w *watcher) waitForRoom() {
	for w.mustWait() {
		<-w.room
	}
}

func (w *watcher) mustWait() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isOpen && w.isFull()
}

// Release implements [reflector.Releaser].
func (w *watcher) Release(events []listwatch.Event) { release(events) }

// restart is called before the state is requested again. The watch can only start over if the
// reader has not received any event. Otherwise the new state may lack objects that the reader has
// received, and only the reader can drop them. If the initial events were cut short, the error
// quotes the cause and does not wrap it, because a wrapped io.EOF would look like a clean end.
func (w *watcher) restart(cause error, at *reflector.ResumePoint) error {
	expired := &listwatch.Error{Code: listwatch.Expired, Op: "watch"}
	switch {
	case at.Synced:
		expired.Message = "the server no longer has version " + at.Version.String() +
			": it has an older state, or an unrelated one"
		expired.Err = cause
	case !w.reset():
		expired.Message = "the connection ended within the initial events, so the state is incomplete; watch again (" +
			cause.Error() + ")"
	default:
		return nil
	}
	return expired
}

// reset empties the queue. If the reader has received an event already, it returns false and does
// nothing.
func (w *watcher) reset() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken {
		return false
	}
	clear(w.queue)
	w.queue, w.bytes = w.queue[:0], 0
	return true
}

// end makes Next return err after the queued events. Only the first call has an effect.
func (w *watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		signal(w.ready)
	}
}

// Close implements [listwatch.Watcher]. From now on Next returns io.EOF.
func (w *watcher) Close() error {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue, w.bytes, w.err = nil, 0, io.EOF
	signal(w.ready)
	signal(w.room)
	return nil
}

// signal puts a token into a channel of capacity 1, unless it has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
