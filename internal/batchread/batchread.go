// Package batchread lets concurrent callers share consistent reads of a remote state.
//
// A caller needs a result that is at least as new as everything it knew when it called, so it
// cannot use a read that is already under way. It can share the next one with every caller
// that arrives until that read starts. However many callers there are, at most one read is
// under way, and each caller waits for at most two.
package batchread

import (
	"context"
	"sync"
)

// A Reader batches reads of a T. It is safe for concurrent use once its exported fields are
// set.
type Reader[T any] struct {
	// Read performs one read and must be set. Calls never overlap. Read bounds its own
	// duration: the contexts of the callers only bound how long they wait.
	Read func() (T, error)

	// Start runs f, which performs reads until no caller waits, on another goroutine. If it
	// cannot, it returns an error, which Get then returns. If nil, a go statement is used.
	Start func(f func()) error

	mu sync.Mutex
	// Guarded by mu.
	next    *batch[T] // callers that wait for the next read; nil if there are none
	running bool      // a goroutine performs reads
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

// run performs reads until no caller waits for another.
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
