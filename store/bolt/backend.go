package bolt

import (
	"context"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/expiry"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// A backend keeps one collection. It serves lists and watches from its log.
type backend struct {
	*history.Log
	// Immutable after construction.
	db        *DB
	name      string
	lifetimes *expiry.Queue[listwatch.Key]
	expired   atomic.Uint64 // the number of objects that expire has deleted

	// Guarded by db.mu.
	floor   listwatch.Version // the floor in the file, at most the floor of the log
	horizon listwatch.Version // the horizon in the file, at most the horizon of the log
}

var _ store.Renewer = (*backend)(nil)

// History returns the log for [store.Collection.Union].
func (b *backend) History() *history.Log { return b.Log }

// Stats returns the sizes of the collection.
func (b *backend) Stats() listwatch.Stats {
	s := b.Log.Stats()
	s.Expiring, s.Expired = b.lifetimes.Len(), b.expired.Load()
	return s
}

func (b *backend) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.Log.Get(key), nil
}

// Commit implements [store.Backend]. It returns when the write is on disk. If ctx ends while
// the write is queued, nothing is written. If ctx ends later, the write may or may not
// happen.
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &request{backend: b, change: c, done: make(chan struct{})}
	if !b.db.queue.add(r) {
		return nil, errClosed()
	}
	select {
	case <-r.done:
		return r.object, r.err
	case <-ctx.Done():
		r.state.CompareAndSwap(queued, canceled)
		return nil, ctx.Err()
	}
}
