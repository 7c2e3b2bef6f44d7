package bolt

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// A backend keeps one collection. Lists and watches are those of the log.
type backend struct {
	*history.Log
	// Immutable after construction.
	db   *DB
	name string

	floor listwatch.Version // of the file; the log's is the same or newer; guarded by db.file
}

var _ store.Backend = (*backend)(nil)

// Get returns the newest object at key, or nil.
func (b *backend) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.Log.Get(key), nil
}

// Commit writes c unless somebody else was first, and returns when it is on disk. Where ctx ends before the write is on its way to the
// disk, nothing is written; where it ends after that, the write may be there or not.
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &request{backend: b, change: c, done: make(chan struct{})}
	if !b.db.queue.add(r) {
		return nil, errClosed(b.db.path)
	}
	select {
	case <-r.done:
		return r.object, r.err
	case <-ctx.Done():
		r.state.CompareAndSwap(queued, withdrawn)
		return nil, ctx.Err()
	}
}

func errClosed(path string) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Message: path + " is closed"}
}
