// Package controller calls a function for each object that may need work, until the function
// succeeds. The function compares the desired state with the actual state, which it reads from
// informers, and corrects the difference.
package controller

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/workqueue"
)

// Options configure [Reconcile]. The zero value is ready to use.
type Options struct {
	// Concurrency is the number of calls at the same time, for different keys. If zero or negative,
	// 1 is used.
	Concurrency int
	// Queue holds the keys of the objects to reconcile. Its fields configure the delay before a
	// retry. The program may add keys to it: with [Enqueue] for the objects of other informers, and
	// with AddAfter to call the function again later. Reconcile shuts the queue down. If nil, a
	// queue with the defaults is used.
	Queue *workqueue.Queue[listwatch.Key]
	// DrainTimeout is the time for which calls may continue after ctx has ended. After this time
	// the context of the calls ends. If zero, their context ends together with ctx. A negative
	// value means that their context does not end.
	DrainTimeout time.Duration
	// Failed is called after each call that returned an error, with the delay before the retry,
	// from the goroutine of that call. If nil, errors are not reported.
	Failed func(key listwatch.Key, err error, delay time.Duration)
}

// Reconcile calls f with the key of each object of i, and again whenever the object changes,
// until ctx ends. The caller must run i.
//
//   - The calls start when i has synced, so f finds the complete state in i.
//   - No two calls have the same key at the same time. If an object changes during a call, f is
//     called again when that call has returned. Changes that happen in the meantime result in one
//     call.
//   - f is also called for deleted objects. It then finds no object under this key.
//   - If f returns an error, f is called again after a delay. The delay grows with each failure of
//     this key. If the error is a [*listwatch.Error], the delay is at least its Retry-After.
//
// When ctx ends, no further call starts. Reconcile waits for the calls in progress and returns
// ctx.Err(). It returns an error of code Unavailable if the Run of i returns first, and an error of
// code Invalid if i has no Source. Reconcile does not recover from a panic of f.
func Reconcile[T any](
	ctx context.Context, i *informer.Informer[T], f func(context.Context, listwatch.Key) error, o Options,
) error {
	o.Queue = cmp.Or(o.Queue, &workqueue.Queue[listwatch.Key]{})
	defer o.Queue.ShutDown()
	if err := i.WaitForSync(ctx); err != nil {
		return err
	}
	starts, endStarts := context.WithCancel(ctx)
	calls, endCalls := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endCalls(nil)
	var workers sync.WaitGroup
	for range max(o.Concurrency, 1) {
		workers.Go(func() { o.work(starts, calls, f) }) // returns after endStarts, or when ctx ends
	}
	for c := range i.Changes(ctx, nil) {
		o.Queue.Add(c.Key)
	}
	endStarts()
	if o.DrainTimeout >= 0 {
		defer time.AfterFunc(o.DrainTimeout, func() { endCalls(context.Cause(ctx)) }).Stop()
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "reconcile", Message: "the informer's Run has returned"}
}

// work calls f for one key after another until starts has ended. It passes calls as the context.
func (o *Options) work(starts, calls context.Context, f func(context.Context, listwatch.Key) error) {
	for {
		key, err := o.Queue.Get(starts)
		if err != nil {
			return
		}
		if err := f(calls, key); err == nil {
			o.Queue.Forget(key)
		} else if delay := o.Queue.AddRateLimited(key, listwatch.AsError(err).RetryAfter()); o.Failed != nil {
			o.Failed(key, err, delay)
		}
		o.Queue.Done(key)
	}
}

// maxPending is the number of changes by which Enqueue's handler may lag behind the informer. The
// handler needs microseconds for a change, so in practice the informer never waits.
const maxPending = 1024

// When an object of i changes, Enqueue calls keys with its state before the change and with its
// state after the change, and adds the results to q. So a controller of apps can reconcile an app
// when one of its instances changes, and both apps when an instance moves from one to the other.
//
// Unlike a handler with the default options, Enqueue sees every state that the local store of i has
// held. A slow call of keys therefore delays i.
//
// Pass q to [Reconcile] in Options.Queue. If the function to reconcile reads from i, wait for the
// sync of i before the call of Reconcile.
func Enqueue[T any](
	i *informer.Informer[T], q *workqueue.Queue[listwatch.Key], keys func(T) []listwatch.Key,
) *informer.Registration[T] {
	add := func(value T) {
		for _, key := range keys(value) {
			q.Add(key)
		}
	}
	return i.Handle(informer.Handler[T]{
		OnAdd:    func(value T, _ bool) { add(value) },
		OnUpdate: func(old, value T) { add(old); add(value) },
		OnDelete: func(d informer.Deleted[T]) { add(d.Value) },
	}, &informer.HandlerOptions{MaxPending: maxPending}) // a limit disables coalescing
}
