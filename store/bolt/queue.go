package bolt

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A request is a write on its way to the file.
type request struct {
	// Immutable.
	backend *backend
	change  store.Change
	expires bool          // the change is the delete of an object whose TTL has ended
	done    chan struct{} // closed after object and err are set

	state atomic.Int32

	// Owned by the committer until done is closed.
	object *listwatch.Object
	err    error
}

// The states of a request. A request starts as queued. Then either the committer starts to
// commit it or its writer cancels it, whichever changes the state first.
const (
	queued int32 = iota
	committing
	canceled
)

func (r *request) finish(o *listwatch.Object, err error) {
	r.object, r.err = o, err
	close(r.done)
}

// size estimates the bytes that the request adds to a transaction.
func (r *request) size() int {
	const overhead = 128
	if r.change.New == nil {
		return overhead
	}
	return overhead + len(r.change.New.Before) + len(r.change.New.After)
}

// The limits of one transaction. A larger transaction is not more efficient, but takes
// longer for all its writers.
const (
	maxBatchRequests = 4096
	maxBatchBytes    = 4 << 20
)

// A queue holds the requests that wait for the committer, in order of arrival.
type queue struct {
	signal chan struct{} // capacity 1; holds a token when the committer must look for work

	mu sync.Mutex
	// Guarded by mu.
	requests []*request
	closed   bool
}

func newQueue() queue { return queue{signal: make(chan struct{}, 1)} }

// wake makes the committer check for work.
func (q *queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// add appends r. It returns false if the queue is closed.
func (q *queue) add(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.requests = append(q.requests, r)
	q.wake()
	return true
}

// putBack inserts requests at the front.
func (q *queue) putBack(requests []*request) {
	if len(requests) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(requests, q.requests...)
	q.wake()
}

// take waits for requests, and removes as many as fit into one transaction. The batch is empty if
// the committer was woken for other work. more is false once the queue is closed and empty.
func (q *queue) take() (batch []*request, more bool) {
	if batch, closed := q.tryTake(); len(batch) > 0 || closed {
		return batch, len(batch) > 0
	}
	<-q.signal
	batch, closed := q.tryTake()
	return batch, len(batch) > 0 || !closed
}

// gather waits until the queue has n requests, but at most for the given time.
func (q *queue) gather(n int, limit time.Duration) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	defer q.wake() // a signal received below may have been sent for other work
	for q.canGather(n) {
		select {
		case <-q.signal:
		case <-timeout.C:
			return
		}
	}
}

// canGather reports whether the queue has fewer than n requests and is open.
func (q *queue) canGather(n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests) < n && !q.closed
}

func (q *queue) tryTake() (batch []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.requests) && n < maxBatchRequests && (n == 0 || bytes < maxBatchBytes) {
		bytes += q.requests[n].size()
		n++
	}
	batch = q.requests[:n:n]
	if q.requests = q.requests[n:]; len(q.requests) == 0 {
		q.requests = nil
	}
	return batch, q.closed
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}
