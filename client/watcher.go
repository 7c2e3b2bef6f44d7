package client

import (
	"context"
	"io"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A watcher is what the reader holds: the events that have come and are not read. Behind it a goroutine follows the collection and
// waits while there is no room, which the server feels.
type watcher struct {
	// Immutable after construction.
	cancel context.CancelFunc // ends the goroutine
	ready  chan struct{}      // one place; filled when the queue is not empty any more, or over
	room   chan struct{}      // one place; filled when the queue is not full any more

	mu sync.Mutex
	// Guarded by mu.
	queue []listwatch.Event
	bytes int   // of the objects in queue
	taken bool  // the reader has got something
	err   error // what comes after the queue; nil: more events
}

var _ reflector.Releaser = (*watcher)(nil)

// Bounds on what waits for the reader; one event always may.
const (
	queueEvents = 256
	queueBytes  = 1 << 20
)

func newWatcher(cancel context.CancelFunc) *watcher {
	return &watcher{cancel: cancel, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Next returns what has come. What is there is returned even where ctx has ended.
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
	full := w.isFull()
	n := copy(dst, w.queue)
	for i := range n {
		w.bytes -= len(dst[i].Object.Data)
	}
	left := copy(w.queue, w.queue[n:])
	clear(w.queue[left:])
	w.queue = w.queue[:left]
	w.taken = w.taken || n > 0
	if full && !w.isFull() {
		signal(w.room)
	}
	return n, nil
}

// isFull is called with mu held.
func (w *watcher) isFull() bool { return len(w.queue) >= queueEvents || w.bytes >= queueBytes }

// push gives the reader e. It reports false, and may take e nevertheless, where there is no room.
func (w *watcher) push(e listwatch.Event) (room bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return true // nobody reads
	}
	w.queue = append(w.queue, e)
	w.bytes += len(e.Object.Data)
	if len(w.queue) == 1 {
		signal(w.ready)
	}
	return !w.isFull()
}

// Release implements [reflector.Releaser].
func (w *watcher) Release(events []listwatch.Event) {
	var buffers [64][]byte
	var labels [len(buffers)]map[string]string
	for len(events) > 0 {
		n := min(len(events), len(buffers))
		for i, e := range events[:n] {
			buffers[i], e.Object.Data = e.Object.Data, nil
			labels[i], e.Object.Labels = e.Object.Labels, nil
		}
		pool.PutBuffers(buffers[:n]...)
		pool.PutMaps(labels[:n]...)
		events = events[n:]
	}
}

// reset forgets what the reader has not seen; it reports false where the reader has seen something.
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

// end lets the reader have what is there and then err. The first end counts.
func (w *watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		signal(w.ready)
	}
}

// Close ends the watcher: Next returns io.EOF from now on.
func (w *watcher) Close() error {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue, w.bytes, w.err = nil, 0, io.EOF
	signal(w.ready)
	return nil
}

// signal fills a channel of one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
