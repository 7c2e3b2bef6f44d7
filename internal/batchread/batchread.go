// Package batchread lets concurrent callers share consistent reads of a remote state.
//
// A caller needs a result that is at least as new as the time of its call, so it cannot
// share a read that has already started. It can share the next read with every caller that
// arrives before that read starts. So at most one read runs at a time, and each caller
// waits for at most two reads, however many callers there are.
package batchread

import (
	"context"
	"sync"
)

// A Reader batches reads of a T. It is safe for concurrent use once its exported fields are
// set.
type Reader[T any] struct {
	// Read performs one read. It must be set. Calls never overlap. Read must limit its own
	// duration, because the contexts of the callers only limit how long they wait.
	Read func() (T, error)

	// Start runs f on another goroutine. f performs reads until no caller waits. If Start
	// returns an error, Get returns it. If Start is nil, a go statement is used.
	Start func(f func()) error

	mu sync.Mutex
	// Guarded by mu.

	// next is the batch that waits for the next read. It is nil if no caller waits.
	next *batch[T]
	// running is true while a goroutine performs reads.
	running bool
}

// A batch is a read that several callers share.
type batch[T any] struct {
	done chan struct{} // closed after the read
	// Immutable once done is closed.
	result T
	err    error
}

// Get returns the result of a read that started after the call. If ctx ends first, it returns
// the error of ctx, and the read continues for the other callers.
func (r *Reader[T]) Get(ctx context.Context) (T, error) {
	b, err := r.join()
	if err == nil {
		select {
		case <-b.done:
			return b.result, b.err
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	var zero T
	return zero, err
}

// join returns the batch of the next read.
func (r *Reader[T]) join() (*batch[T], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		if err := r.start(); err != nil {
			return nil, err
		}
		r.running = true
	}
	if r.next == nil {
		r.next = &batch[T]{done: make(chan struct{})}
	}
	return r.next, nil
}

func (r *Reader[T]) start() error {
	if r.Start != nil {
		return r.Start(r.run)
	}
	go r.run() // returns when no caller waits
	return nil
}

// run performs reads until no caller waits for a read.
func (r *Reader[T]) run() {
	for b := r.take(); b != nil; b = r.take() {
		b.result, b.err = r.Read()
		close(b.done)
	}
}

// take returns the batch whose read starts now, or nil if no caller waits.
func (r *Reader[T]) take() *batch[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.next
	r.next = nil
	r.running = b != nil
	return b
}
