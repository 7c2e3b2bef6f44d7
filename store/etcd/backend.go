package etcd

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// A backend keeps one collection. Its log follows etcd.
type backend struct {
	*history.Log

	// Immutable after construction.
	db      *DB
	spec    store.CollectionSpec
	name    string
	keys    keyRange
	applied *history.Revision // the log holds every event up to this revision
	created time.Time
	// following is true while a watch of etcd is open.
	following atomic.Bool

	demand demand
	// keyError is the error of an unreadable key, or nil if every key can be read.
	keyError atomic.Pointer[error]

	// load sets these fields. After that, only the goroutine of run uses them.
	unreadable map[string]bool // keys whose value is not an object
	counted    time.Time       // the time of the last comparison by checkCount
}

var _ store.Backend = (*backend)(nil)

func newBackend(db *DB, s store.CollectionSpec) *backend {
	b := &backend{
		db: db, spec: s, name: s.QualifiedName(), keys: newKeyRange(db.options, s), applied: new(history.Revision),
		created: time.Now(), demand: demand{signal: make(chan struct{}, 1)},
	}
	b.Log = history.New(history.Options{
		MaxAge: db.options.HistoryAge, MaxBytes: db.options.HistoryBytes, FrameCacheBytes: db.options.FrameCacheBytes,
		Description: s.Description(db.Epoch()), Revision: b.applied,
	})
	return b
}

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
	// If etcd is unreachable, CompactTo still drops what it can.
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

// read returns the object in kv. If the log has the same version, it returns the object of
// the log.
func (b *backend) read(key listwatch.Key, kv *keyValue) (*listwatch.Object, error) {
	v := listwatch.Version(kv.ModRevision)
	if o := b.Log.Get(key); o != nil && o.Version == v {
		return o, nil
	}
	value := kv.Value
	if t := b.db.options.Transformer; t != nil {
		var err error
		if value, err = t.FromStorage(Location{b.name, key}, value); err != nil {
			return nil, unreadableKey(kv.Key, err)
		}
	}
	o, err := decode(b.spec, key, value, v)
	if err != nil {
		return nil, unreadableKey(kv.Key, err)
	}
	return o, nil
}

func unreadableKey(path []byte, err error) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "etcd: key " + string(path), Err: err}
}
