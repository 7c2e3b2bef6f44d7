package main

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// queue holds the keys to reconcile. Each key is in it at most once. If a key is added while a
// worker reconciles it, the key stays queued until that worker is done, so no two workers hold
// the same key. A key that failed is added again after a delay that grows with each failure.
//
// client-go's workqueue does the same, but depends on Kubernetes' modules.
type queue struct {
	wake chan struct{} // capacity 1; holds a token if a worker may find a key

	mu sync.Mutex
	// Guarded by mu.
	order    []listwatch.Key
	waiting  map[listwatch.Key]bool // the keys of order, and keys to add when their worker is done
	working  map[listwatch.Key]bool
	failures map[listwatch.Key]int
}

// The delay after a failure doubles from firstRetry to lastRetry.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

func newQueue() *queue {
	return &queue{
		wake: make(chan struct{}, 1), waiting: map[listwatch.Key]bool{}, working: map[listwatch.Key]bool{}, failures: map[listwatch.Key]int{},
	}
}

// add queues key unless it is queued already.
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

// push appends key to order. The caller must hold mu.
func (q *queue) push(key listwatch.Key) {
	q.order = append(q.order, key)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for a key to reconcile. The worker must call done with this key afterwards.
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
	if len(q.order) > 0 { // wake another worker
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return key, true
}

// done ends the work on key. If err is not nil, key is queued again after a delay.
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
	delay := min(firstRetry<<min(q.failures[key], 16), lastRetry)
	q.failures[key]++
	time.AfterFunc(delay, func() { q.add(key) })
}
