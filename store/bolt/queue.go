package bolt

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A request is one write on its way to the file.
type request struct {
	// Immutable.
	backend *backend
	change  store.Change
	done    chan struct{} // closed when object and err are set

	state atomic.Int32

	// Owned by the committer until done is closed.
	object *listwatch.Object
	err    error
}

// The states of a request. Who moves it on from queued decides its fate.
const (
	queued int32 = iota
	taken
	withdrawn
)

func (r *request) finish(o *listwatch.Object, err error) {
	r.object, r.err = o, err
	close(r.done)
}

// size is about how many bytes the request adds to a transaction.
func (r *request) size() int {
	const overhead = 128
	if r.change.New == nil {
		return overhead
	}
	return overhead + len(r.change.New.Before) + len(r.change.New.After)
}

// The bounds of one transaction: a larger one gains nothing, and makes all in it wait.
const (
	batchRequests = 4096
	batchBytes    = 4 << 20
)

// A queue holds the requests that wait for the committer, in the order in which they came.
type queue struct {
	signal chan struct{} // of one place: something has changed

	mu sync.Mutex
	// Guarded by mu.
	requests []*request
	closed   bool
}

func newQueue() queue { return queue{signal: make(chan struct{}, 1)} }

// wake makes the committer look for something to do.
func (q *queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// add reports whether r was taken: not after close.
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

// putBack puts requests in front of those that wait.
func (q *queue) putBack(requests []*request) {
	if len(requests) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(requests, q.requests...)
	q.wake()
}

// take waits for requests and returns those for one transaction; none where it was woken for something else. It reports whether there
// can be more: not after close, once all have been taken.
func (q *queue) take() (batch []*request, more bool) {
	if batch, closed := q.poll(); len(batch) > 0 || closed {
		return batch, len(batch) > 0
	}
	<-q.signal
	batch, closed := q.poll()
	return batch, len(batch) > 0 || !closed
}

// gather waits until n requests wait, at most for a time.
func (q *queue) gather(n int, limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	defer q.wake() // for what else there was to do
	for q.fewer(n) {
		select {
		case <-q.signal:
		case <-late.C:
			return
		}
	}
}

// fewer reports whether fewer than n requests wait and more can come.
func (q *queue) fewer(n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests) < n && !q.closed
}

func (q *queue) poll() (batch []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.requests) && n < batchRequests && (n == 0 || bytes < batchBytes) {
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
