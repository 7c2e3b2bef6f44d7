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
type Options[T any] struct {
	// Concurrency is the number of calls at the same time, for different keys. If zero or negative,
	// 1 is used.
	Concurrency int
	// Queue holds the keys of the objects to reconcile. Its fields configure the delay before a
	// retry. The program may add keys to it: with [Enqueue] for the objects of other informers, and
	// with AddAfter to call the function again later. Reconcile shuts the queue down. If nil, a
	// queue with the defaults is used.
	Queue *workqueue.Queue[listwatch.Key]
	// Also are further informers whose objects are reconciled, such as one for each namespace that
	// the program may read. The caller must run them. Their keys must not overlap.
	Also []*informer.Informer[T]
	// Ignore reports whether an update of an object needs no call. A controller that writes the
	// status of its objects ignores updates that keep metadata.generation, which counts the changes
	// of everything except metadata and status. Ignore is called neither for objects that are added
	// or deleted, nor at a resync. If nil, each update results in a call.
	Ignore func(old, value T) bool
	// DrainTimeout is the time for which calls may continue after ctx has ended. After this time
	// the context of the calls ends. If zero, their context ends together with ctx. A negative
	// value means that their context does not end.
	DrainTimeout time.Duration
	// Called is called after each call of the function, from the goroutine of that call. If nil,
	// errors are not reported.
	Called func(Call)
}

// A Call is a finished call of the function of [Reconcile].
type Call struct {
	Key listwatch.Key
	// Waited is the time for which the call has waited until the informers had the writes of the
	// previous call with this key.
	Waited time.Duration
	// Skipped is true if the function was not called, because the informers did not receive those
	// writes in time, or because an informer lags by more than its MaxLag. Err is the reason.
	Skipped bool
	// Took is the duration of the call.
	Took time.Duration
	// Err is the error that the function returned, or nil.
	Err error
	// Retry is the delay before the function is called again because of Err. If Err is nil, it is
	// zero.
	Retry time.Duration
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
//   - f sees its own writes: a call starts when each informer has the writes that earlier calls
//     with this key have made with their contexts through [informer.Informer.Track]. If an informer
//     does not have them within [informer.OwnWriteTimeout], this counts as a failure of the key.
//   - While i or an informer of Options.Also lags by more than its MaxLag, f is not called.
//
// When ctx ends, no further call starts. Reconcile waits for the calls in progress and returns
// ctx.Err(). It returns an error of code Unavailable if the Run of i returns first, and an error of
// code Invalid if i has no Source. The same holds for the informers of Options.Also. Reconcile does
// not recover from a panic of f.
func Reconcile[T any](
	ctx context.Context, i *informer.Informer[T], f func(context.Context, listwatch.Key) error, o Options[T],
) error {
	o.Queue = cmp.Or(o.Queue, &workqueue.Queue[listwatch.Key]{})
	defer o.Queue.ShutDown()
	all := append([]*informer.Informer[T]{i}, o.Also...)
	for _, i := range all {
		if err := i.WaitForSync(ctx); err != nil {
			return err
		}
	}
	starts, endStarts := context.WithCancel(ctx)
	defer endStarts()
	calls, endCalls := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endCalls(nil)
	var workers sync.WaitGroup
	w := &worker[T]{Options: o, reconcile: f, informers: all}
	for range max(o.Concurrency, 1) {
		workers.Go(func() { w.work(starts, calls) }) // returns when starts ends
	}
	for _, i := range all {
		// Returns when ctx or the Run of an informer ends.
		workers.Go(func() { defer endStarts(); o.enqueue(starts, i) })
	}
	<-starts.Done()
	if o.DrainTimeout >= 0 {
		defer time.AfterFunc(o.DrainTimeout, func() { endCalls(context.Cause(ctx)) }).Stop()
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "reconcile", Message: "the informer's Run has returned"}
}

// enqueue adds the keys of i to the queue until ctx or the Run of i ends.
func (o *Options[T]) enqueue(ctx context.Context, i *informer.Informer[T]) {
	for c := range i.Changes(ctx, nil) {
		isUpdate := c.Type == informer.ChangeUpdated && !c.Resync
		if !isUpdate || o.Ignore == nil || !o.Ignore(c.Old, c.New) {
			o.Queue.Add(c.Key)
		}
	}
}

// maxPending is the number of changes by which Enqueue's handler may lag behind the informer. The
// handler needs microseconds for a change, so in practice the informer never waits.
const maxPending = 1024

// Enqueue adds keys to q whenever an object of i changes: the results of keys for the state before
// the change and for the state after it. So a controller of apps can reconcile an app when one of
// its instances changes, and both apps when an instance moves from one to the other.
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
