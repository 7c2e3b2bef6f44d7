package controller

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
)

// A worker calls the function to reconcile. The goroutines of a Reconcile share it.
type worker[T any] struct {
	Options[T]
	reconcile func(context.Context, listwatch.Key) error
	informers []*informer.Informer[T]
	own       ownWrites
}

// lagRetry is the delay of a call that was skipped because an informer lags by more than its
// MaxLag. It does not grow, because no event causes another call when the informer has caught up.
const lagRetry = 5 * time.Second

// work calls the function for one key after another until starts has ended. It passes calls as the
// context.
func (w *worker[T]) work(starts, calls context.Context) {
	for {
		key, err := w.Queue.Get(starts)
		if err != nil {
			return
		}
		c, done := w.call(starts, calls, key)
		if done && w.Called != nil {
			w.Called(c)
		}
		w.Queue.Done(key)
	}
}

// call calls the function for key. done is false if starts ended before.
func (w *worker[T]) call(starts, calls context.Context, key listwatch.Key) (c Call, done bool) {
	c = Call{Key: key}
	started := time.Now()
	c.Err = w.own.wait(starts, key)
	c.Waited = time.Since(started)
	if starts.Err() != nil {
		return c, false
	}
	for _, i := range w.informers {
		if err := i.CheckLag(); err != nil {
			c.Err, c.Skipped, c.Retry = err, true, lagRetry
			w.Queue.AddAfter(key, lagRetry)
			return c, true
		}
	}
	if c.Skipped = c.Err != nil; !c.Skipped {
		ctx, log := informer.WithWriteLog(calls)
		started = time.Now()
		c.Err = w.reconcile(ctx, key)
		c.Took = time.Since(started)
		w.own.keep(key, log)
	}
	if c.Err == nil {
		w.Queue.Forget(key)
	} else {
		c.Retry = w.Queue.AddRateLimited(key, listwatch.AsError(c.Err).RetryAfter())
	}
	return c, true
}

// ownWrites holds, for each key, the writes of the last call that the informers may lack. It is
// safe for concurrent use.
type ownWrites struct {
	mu sync.Mutex
	// Guarded by mu.
	logs map[listwatch.Key]*informer.WriteLog
}

// wait blocks until the informers have the writes of the last call with key.
func (o *ownWrites) wait(ctx context.Context, key listwatch.Key) error {
	o.mu.Lock()
	log := o.logs[key]
	o.mu.Unlock()
	if log == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, informer.OwnWriteTimeout)
	defer cancel()
	if err := log.WaitForInformers(ctx); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.logs, key)
	return nil
}

// keep keeps log until the next call with key.
func (o *ownWrites) keep(key listwatch.Key, log *informer.WriteLog) {
	if log.Len() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logs == nil {
		o.logs = make(map[listwatch.Key]*informer.WriteLog)
	}
	o.logs[key] = log
}
