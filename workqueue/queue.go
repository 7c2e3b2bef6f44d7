// Package workqueue provides the queue between the handlers and the workers of a controller. A
// handler adds the key of an object that has changed. A worker takes the key, and acts on the
// current state of the object.
//
//	var q workqueue.Queue[listwatch.Key]
//	// In a handler:
//	q.Add(key)
//	// In each worker:
//	for {
//		key, err := q.Get(ctx)
//		if err != nil {
//			return
//		}
//		if err := reconcile(ctx, key); err != nil {
//			q.AddRateLimited(key, 0)
//		} else {
//			q.Forget(key)
//		}
//		q.Done(key)
//	}
//
// [controller.Reconcile] contains this loop. The rules are the same as in
// k8s.io/client-go/util/workqueue with its default rate limiter, except that the rate limit delays
// no key longer than MaxDelay, and that a retry of a key whose delay ends earlier takes no token.
//
// [controller.Reconcile]: https://pkg.go.dev/github.com/listwatch/listwatch/controller#Reconcile
package workqueue

import (
	"context"
	"io"
	"sync"
	"time"
)

// A Queue hands out keys to workers in the order in which the keys were added. A key that is added
// several times before a worker takes it is handed out once. A key that is added while a worker has
// it is handed out again when that worker is done, so no two workers ever have the same key.
//
// The zero Queue is ready to use. The methods are safe for concurrent use. The fields must not be
// changed after the first method call, and a Queue must not be copied.
type Queue[K comparable] struct {
	// MinDelay is the delay of [Queue.AddRateLimited] after the first failure of a key. It doubles
	// with each failure, up to MaxDelay. If zero, 5 ms is used. A negative value means that keys
	// are added at once.
	MinDelay time.Duration
	// MaxDelay is the greatest delay that the queue chooses. It also bounds the delays that Rate
	// requires, so calls may exceed Rate. If zero, 1000 s is used. If negative or less than
	// MinDelay, no such delay is greater than MinDelay. A delay that the caller requests may be
	// greater.
	MaxDelay time.Duration
	// Rate limits the calls of AddRateLimited per second, for all keys together. Calls beyond it
	// get a longer delay. If zero, 10 is used. A negative value means no limit.
	Rate float64
	// Burst is the number of calls that may exceed Rate after a pause. If zero, 100 is used. A
	// negative value means no burst.
	Burst int

	mu sync.Mutex
	// Guarded by mu.

	// wake wakes calls of Get. It is signaled for each key that is pushed to order.
	wake  sync.Cond
	order []K // the keys that Get returns next
	// pending holds the keys of order, and the keys in progress that were added again, with the
	// time at which they were added. The latter are pushed to order when their worker is done.
	pending map[K]time.Time
	// inProgress holds the keys that Get has returned and for which Done was not called yet.
	inProgress map[K]struct{}
	delayed    map[K]*delayedKey
	isShutDown bool
	records[K]
}

// records holds what a queue remembers about earlier calls.
type records[K comparable] struct {
	// failures and limit determine the delays of retries.
	failures map[K]int
	limit    limiter
	// added is the number of keys that were added to pending, and retried the number of calls of
	// AddRateLimited.
	added, retried uint64
}

// A delayedKey is a pending delay of a key. The timer adds the key to the queue at due.
type delayedKey struct {
	due   time.Time
	timer *time.Timer
}

// lock acquires mu and prepares the zero value.
func (q *Queue[K]) lock() {
	q.mu.Lock()
	if q.pending == nil {
		q.wake.L = &q.mu
		q.pending, q.inProgress = make(map[K]time.Time), make(map[K]struct{})
		q.delayed, q.failures = make(map[K]*delayedKey), make(map[K]int)
	}
}

// Add queues key, unless it is queued already or the queue is shut down.
func (q *Queue[K]) Add(key K) {
	q.lock()
	defer q.mu.Unlock()
	q.add(key)
}

// add is Add for callers that hold mu.
func (q *Queue[K]) add(key K) {
	if _, ok := q.pending[key]; ok || q.isShutDown {
		return
	}
	q.pending[key] = time.Now()
	q.added++
	if _, ok := q.inProgress[key]; !ok {
		q.push(key)
	}
}

// push appends key to order. The caller must hold mu.
func (q *Queue[K]) push(key K) {
	q.order = append(q.order, key)
	q.wake.Signal()
}

// AddAfter adds key after the delay d, or at once if d is zero or negative. If the key has a
// delay already, only the delay that ends first counts. Add does not cancel a delay: the key is
// added now, and again when the delay ends.
func (q *Queue[K]) AddAfter(key K, d time.Duration) {
	q.lock()
	defer q.mu.Unlock()
	q.addAfter(key, d)
}

// addAfter is AddAfter for callers that hold mu.
func (q *Queue[K]) addAfter(key K, d time.Duration) {
	if d <= 0 {
		q.add(key)
		return
	}
	due, old := time.Now().Add(d), q.delayed[key]
	if q.isShutDown || old != nil && !due.Before(old.due) {
		return
	}
	if old != nil {
		old.timer.Stop()
	}
	later := &delayedKey{due: due}
	later.timer = time.AfterFunc(d, func() { q.addDelayed(key, later) })
	q.delayed[key] = later
}

// addDelayed adds key when its timer has fired.
func (q *Queue[K]) addDelayed(key K, d *delayedKey) {
	q.lock()
	defer q.mu.Unlock()
	if q.delayed[key] == d { // a shorter delay may replace d after the timer of d has fired
		delete(q.delayed, key)
		q.add(key)
	}
}

// Get removes the first key and returns it. If there is none, Get waits. The caller must call
// [Queue.Done] with the key. Get returns ctx.Err() if ctx has ended, even if there are keys, and
// [io.EOF] when the queue is shut down and has no more keys.
func (q *Queue[K]) Get(ctx context.Context) (key K, err error) {
	q.lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		q.wait(ctx)
	}
	if err := ctx.Err(); err != nil {
		// A new key may have woken this call. Wake another call, which can take that key.
		q.wake.Signal()
		return key, err
	}
	if len(q.order) == 0 {
		return key, io.EOF
	}
	var none K
	key, q.order[0] = q.order[0], none // the array must not keep the memory of the key reachable
	q.order = q.order[1:]
	delete(q.pending, key)
	q.inProgress[key] = struct{}{}
	return key, nil
}

// wait waits for a key, for ShutDown, or for the end of ctx. The caller must hold mu.
func (q *Queue[K]) wait(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		q.lock()
		defer q.mu.Unlock()
		q.wake.Broadcast()
	})
	defer stop()
	for len(q.order) == 0 && !q.isShutDown && ctx.Err() == nil {
		q.wake.Wait()
	}
}

// Done ends the work on a key that Get returned. If the key was added in the meantime, it is
// queued now.
func (q *Queue[K]) Done(key K) {
	q.lock()
	defer q.mu.Unlock()
	if _, ok := q.inProgress[key]; !ok {
		return
	}
	delete(q.inProgress, key)
	if _, ok := q.pending[key]; ok {
		q.push(key)
	}
}

// Len returns the number of keys that Get would return now without waiting.
func (q *Queue[K]) Len() int {
	q.lock()
	defer q.mu.Unlock()
	return len(q.order)
}

// Stats are the sizes of a [Queue] at one moment.
type Stats struct {
	// Queued is the number of keys that Get would return now without waiting, Delayed the number of
	// keys whose delay has not ended, and InProgress the number of keys that workers have.
	Queued, Delayed, InProgress int
	// Waiting is the time since the first of the queued keys was added, or zero if there is none.
	Waiting time.Duration
	// Added is the number of keys that were ever added. A key that was pending already does not
	// count. Retried is the number of calls of [Queue.AddRateLimited].
	Added, Retried uint64
}

// Stats returns the current sizes of q.
func (q *Queue[K]) Stats() Stats {
	q.lock()
	defer q.mu.Unlock()
	s := Stats{
		Queued: len(q.order), Delayed: len(q.delayed), InProgress: len(q.inProgress),
		Added: q.added, Retried: q.retried,
	}
	if len(q.order) > 0 {
		s.Waiting = time.Since(q.pending[q.order[0]])
	}
	return s
}

// ShutDown drops the delayed keys and makes the queue ignore keys that are added later. Get still
// returns the queued keys, and [io.EOF] when there are none. A key that was added while a worker
// has it is queued when that worker is done. Calling ShutDown again has no effect.
func (q *Queue[K]) ShutDown() {
	q.lock()
	defer q.mu.Unlock()
	q.isShutDown = true
	for _, d := range q.delayed {
		d.timer.Stop()
	}
	clear(q.delayed)
	q.wake.Broadcast()
}
