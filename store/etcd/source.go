package etcd

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// List implements [listwatch.Source].
func (b *backend) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	switch {
	case q.Continue != "":
		if err := b.awaitContinue(ctx, q.Continue); err != nil {
			return listwatch.Page{}, err
		}
	case q.Start == listwatch.StartNewest:
		if err := b.catchUp(ctx); err != nil {
			return listwatch.Page{}, err
		}
	case q.Start == listwatch.StartAt:
		b.demandVersion(q.Version)
	}
	return b.Log.List(ctx, q)
}

// awaitContinue waits until the log reaches the version of a continue token. The token may
// come from another server that was ahead of this one.
func (b *backend) awaitContinue(ctx context.Context, token string) error {
	t, err := history.ParseContinueToken(token)
	switch {
	case err != nil:
		return nil //nolint:nilerr // Log.List returns the same error
	case t.Version == 0:
		return b.catchUp(ctx)
	}
	return b.reach(ctx, t.Version)
}

// CompactTo drops the history up to v in memory, as [history.Log.CompactTo] does.
func (b *backend) CompactTo(v listwatch.Version) {
	// If etcd is unreachable, CompactTo still drops the history that the log has received.
	_ = b.reach(b.db.lifetime, v)
	b.Log.CompactTo(v)
}

// Watch implements [listwatch.Source].
func (b *backend) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	switch q.Start {
	case listwatch.StartNewest:
		if err := b.catchUp(ctx); err != nil {
			return nil, err
		}
	case listwatch.StartAt:
		b.demandVersion(q.Version)
	}
	return b.Log.Watch(ctx, q)
}

// Get implements [store.Backend]. It reads from etcd.
func (b *backend) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	path := b.keys.path(key)
	got, err := b.db.get(ctx, b.db.options.Timeout, path)
	if err != nil {
		return nil, requestError(ctx, "etcd: get "+path, err)
	}
	if len(got.Kvs) == 0 {
		return nil, nil
	}
	return b.read(key, got.Kvs[0])
}
