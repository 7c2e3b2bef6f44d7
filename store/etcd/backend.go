package etcd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/revision"
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
	applied *revision.Revision // the log holds every event up to this revision
	created time.Time
	// following is true while a watch of etcd is open.
	following atomic.Bool

	demand demand
	leases leases
	// keyError is the error of an unreadable key, or nil if every key can be read.
	keyError atomic.Pointer[error]

	// load sets these fields. After that, only the goroutine of run uses them.
	unreadable map[string]bool // keys whose value is not an object
	counted    time.Time       // the time of the last comparison by checkCount
}

func newBackend(db *DB, s store.CollectionSpec) *backend {
	b := &backend{
		db: db, spec: s, name: s.QualifiedName(), keys: newKeyRange(db.options, s), applied: new(revision.Revision),
		created: time.Now(), demand: demand{signal: make(chan struct{}, 1)},
	}
	b.Log = history.New(history.Options{
		Retention: db.options.History, Description: s.Description(db.Epoch()), Revision: b.applied,
	})
	return b
}

// Stats returns the sizes of the collection.
func (b *backend) Stats() listwatch.Stats {
	s := b.Log.Stats()
	s.Expiring = b.leases.len()
	return s
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

// freshnessTimeout limits the time that a read of the newest state waits.
const freshnessTimeout = 3 * time.Second

// startTimeout limits the time that the start of a collection waits without progress. It exceeds
// freshnessTimeout because no client waits, and the server would start again anyway.
const startTimeout = 30 * time.Second

// catchUp waits until the log has every event that etcd had at the time of the call. It
// returns an error of code NotYet if it cannot confirm this within freshnessTimeout.
func (b *backend) catchUp(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, freshnessTimeout)
	defer cancel()
	revision, err := b.db.revisions.Get(limited)
	if err == nil {
		err = b.reach(limited, listwatch.Version(revision))
	}
	return b.notReached(ctx, err, freshnessTimeout)
}

// catchUpAtStart is like catchUp, but it waits for as long as the log advances: etcd sends some
// 10,000 revisions a second, and a busy cluster has many more that are not compacted. It returns an
// error of code NotYet when the log has not advanced for startTimeout.
func (b *backend) catchUpAtStart(ctx context.Context) error {
	revision, err := b.db.readRevision(ctx, startTimeout)
	newest := listwatch.Version(revision)
	for advanced := time.Now(); err == nil && b.applied.Version() < newest; {
		before := b.applied.Version()
		limited, cancel := context.WithTimeout(ctx, freshnessTimeout)
		err = b.reach(limited, newest)
		cancel()
		if err == nil || ctx.Err() != nil {
			continue
		}
		after := b.applied.Version()
		b.db.options.Trace.Replaying(b.name, int64(after), revision)
		if after > before {
			advanced = time.Now()
		}
		if time.Since(advanced) < startTimeout {
			err = nil
		}
	}
	return b.notReached(ctx, err, startTimeout)
}

// reach waits until the log has reached v.
func (b *backend) reach(ctx context.Context, v listwatch.Version) error {
	b.demandVersion(v)
	return b.applied.Wait(ctx, v)
}

// notReached converts err, the result of a wait of at most timeout, to the error for a caller whose
// context is ctx.
func (b *backend) notReached(ctx context.Context, err error, timeout time.Duration) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case b.db.lifetime.Err() != nil:
		return errClosed
	}
	code := listwatch.CodeOf(err)
	if code == listwatch.Unknown {
		code = codeOf(err)
	}
	if code == listwatch.Unavailable || code == listwatch.NotYet {
		return notFresh(err, timeout)
	}
	return clientError(ctx, "etcd", err)
}

// demandVersion records that a reader waits until the log reaches v.
func (b *backend) demandVersion(v listwatch.Version) {
	if b.applied.Version() >= v {
		return
	}
	d := &b.demand
	d.mu.Lock()
	d.version = max(d.version, v)
	d.until = time.Now().Add(freshnessTimeout)
	d.mu.Unlock()
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// isBehind reports whether a reader waits for a version that the log has not reached.
func (b *backend) isBehind() bool {
	d := &b.demand
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.applied.Version() < d.version && time.Now().Before(d.until) {
		return true
	}
	d.version = 0
	return false
}

// notFresh returns the error for a request that needs the newest state, if this state could not be
// read within timeout.
func notFresh(cause error, timeout time.Duration) error {
	return &listwatch.Error{
		Code:    listwatch.NotYet,
		Message: "the newest state could not be read from etcd within " + timeout.String(),
		Details: &listwatch.Details{RetryAfter: retryAfter},
		Err:     cause,
	}
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
		if value, err = t.FromStorage(store.Location{Collection: b.name, Key: key}, value); err != nil {
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

// A demand is the highest version that readers wait for. While the log has not reached it,
// the server requests progress from etcd.
type demand struct {
	signal chan struct{} // capacity 1; holds a token when version has changed

	mu sync.Mutex
	// Guarded by mu.
	version listwatch.Version
	until   time.Time // when the readers stop waiting
}

// A keyValue is a key with its value and revisions.
type keyValue = mvccpb.KeyValue

var _ store.Renewer = (*backend)(nil)

// Renew implements [store.Renewer]. It makes no revision unless the TTL has become longer.
func (b *backend) Renew(ctx context.Context, o *listwatch.Object) error {
	if b.db.options.ReadOnly {
		return errReadOnly()
	}
	path := b.keys.path(o.Key)
	lease, err := b.leaseOf(ctx, path, o)
	if err == nil && lease != 0 {
		err = b.renewLease(ctx, o, lease)
	}
	return clientError(ctx, "etcd: renew "+path, err)
}
