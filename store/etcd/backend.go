package etcd

import (
	"context"
	"sync"
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
	db       *DB
	resource store.CollectionSpec
	name     string
	location keyRange
	head     *history.Revision // everything up to it is in the log
	began    time.Time

	wanted wanted
	odd    atomic.Pointer[error] // why the first key is hidden that is; nil: none is

	// Owned by the goroutine that follows; before it starts, by who loads.
	hidden  map[string]bool // keys that hold no object
	audited time.Time
}

// wanted is the version that somebody waits for.
type wanted struct {
	heard atomic.Int64  // when etcd was heard of last, in nanoseconds since 1970
	kick  chan struct{} // wakes who asks for progress

	mu sync.Mutex
	// Guarded by mu.
	version listwatch.Version
	until   time.Time
}

var _ store.Backend = (*backend)(nil)

func newBackend(db *DB, r store.CollectionSpec) *backend {
	b := &backend{
		db: db, resource: r, name: r.QualifiedName(), location: newLocation(db.options, r), head: new(history.Revision),
		began: time.Now(), wanted: wanted{kick: make(chan struct{}, 1)},
	}
	b.Log = history.New(history.Options{
		MaxAge: db.options.HistoryAge, MaxBytes: db.options.HistoryBytes, FrameCacheBytes: db.options.FrameCacheBytes,
		Description: r.Description(db.Epoch()), Revision: b.head,
	})
	return b
}

// want says that somebody waits for the log to come to v: etcd is asked for its progress until it has.
func (b *backend) want(v listwatch.Version) {
	if b.head.Version() >= v {
		return
	}
	w := &b.wanted
	w.mu.Lock()
	w.version = max(w.version, v)
	w.until = time.Now().Add(patience)
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// behind reports whether somebody waits for more than the log has.
func (b *backend) behind() bool {
	w := &b.wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.head.Version() < w.version && time.Now().Before(w.until) {
		return true
	}
	w.version = 0 // reached, or given up
	return false
}

// List implements [listwatch.Source].
func (b *backend) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	switch {
	case q.Continue != "":
		if err := b.reach(ctx, q.Continue); err != nil {
			return listwatch.Page{}, err
		}
	case q.Start == listwatch.Newest:
		if err := b.catchUp(ctx); err != nil {
			return listwatch.Page{}, err
		}
	case q.Start == listwatch.At:
		b.want(q.Version)
	}
	return b.Log.List(ctx, q)
}

// reach waits until a list can go on that another server may have begun, which was further on.
func (b *backend) reach(ctx context.Context, token string) error {
	p, err := history.ParseContinueToken(token)
	switch {
	case err != nil:
		return nil //nolint:nilerr // the log says it in its own way
	case p.Version == 0:
		return b.catchUp(ctx)
	}
	b.want(p.Version)
	return b.head.Wait(ctx, p.Version)
}

// CompactTo forgets the history before v in memory, as [history.Log.CompactTo] does.
func (b *backend) CompactTo(v listwatch.Version) {
	b.want(v)
	_ = b.head.Wait(b.db.life, v) // where etcd is lost, what is there is forgotten
	b.Log.CompactTo(v)
}

// Watch implements [listwatch.Source].
func (b *backend) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	switch q.Start {
	case listwatch.Newest:
		if err := b.catchUp(ctx); err != nil {
			return nil, err
		}
	case listwatch.At:
		b.want(q.Version)
	}
	return b.Log.Watch(ctx, q)
}

// Get returns the newest object at key, or nil. It asks etcd.
func (b *backend) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	path := b.location.path(key)
	got, err := b.db.get(ctx, b.db.options.Timeout, path)
	if err != nil {
		return nil, failed(ctx, "etcd: get "+path, err)
	}
	if len(got.Kvs) == 0 {
		return nil, nil
	}
	return b.read(key, got.Kvs[0])
}

// read returns the object that kv holds: the one of the log where that has it.
func (b *backend) read(key listwatch.Key, kv *keyValue) (*listwatch.Object, error) {
	v := listwatch.Version(kv.ModRevision)
	if o := b.Log.Get(key); o != nil && o.Version == v {
		return o, nil
	}
	value := kv.Value
	if t := b.db.options.Transformer; t != nil {
		var err error
		if value, err = t.FromStorage(Location{b.name, key}, value); err != nil {
			return nil, unreadable(kv.Key, err)
		}
	}
	o, err := decode(b.resource, key, value, v)
	if err != nil {
		return nil, unreadable(kv.Key, err)
	}
	return o, nil
}

func unreadable(path []byte, err error) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "etcd: key " + string(path), Err: err}
}
