package main

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A queue holds the keys that have to be looked at. A key that waits is there once, however often it is added; one that is being worked on
// waits until that is done, so that no two workers have the same key. After a failure it comes back later and later.
//
// No library that we found does this without Kubernetes' modules, and it is short.
type queue struct {
	wake chan struct{} // one place; filled when a worker may find something

	mu sync.Mutex
	// Guarded by mu.
	order    []listwatch.Key
	waiting  map[listwatch.Key]bool // in order, or to be put there when the worker is done
	working  map[listwatch.Key]bool
	failures map[listwatch.Key]int
}

// The wait after a failure: doubled each time.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

func newQueue() *queue {
	return &queue{
		wake: make(chan struct{}, 1), waiting: map[listwatch.Key]bool{}, working: map[listwatch.Key]bool{}, failures: map[listwatch.Key]int{},
	}
}

// add has a worker look at key.
func (q *queue) add(key listwatch.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[key] {
		return
	}
	q.waiting[key] = true
	if !q.working[key] {
		q.push(key)
	}
}

// push is called with mu held.
func (q *queue) push(key listwatch.Key) {
	q.order = append(q.order, key)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for a key to work on. The worker must call done with it.
func (q *queue) next(ctx context.Context) (listwatch.Key, error) {
	for {
		if key, ok := q.take(); ok {
			return key, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return listwatch.Key{}, ctx.Err()
		}
	}
}

func (q *queue) take() (key listwatch.Key, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return key, false
	}
	key, q.order = q.order[0], q.order[1:]
	delete(q.waiting, key)
	q.working[key] = true
	if len(q.order) > 0 { // for another worker
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return key, true
}

// done says that the work on key is over. Where it failed, key comes back after a while.
func (q *queue) done(key listwatch.Key, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
	if q.waiting[key] {
		q.push(key)
	}
	if err == nil {
		delete(q.failures, key)
		return
	}
	wait := min(firstRetry<<min(q.failures[key], 16), lastRetry)
	q.failures[key]++
	time.AfterFunc(wait, func() { q.add(key) })
}
