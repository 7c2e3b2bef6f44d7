package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/batchread"
	"github.com/listwatch/listwatch/store"
)

// A DB is a set of collections in one etcd cluster. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	options    Options
	client     *clientv3.Client
	watches    pb.WatchClient
	leases     pb.LeaseClient
	clusterID  uint64
	revisions  batchread.Reader[int64] // reads the newest revision of etcd
	lifetime   context.Context         // ends with Close
	cancel     context.CancelFunc      // cancels lifetime
	goroutines sync.WaitGroup          // Close waits for them

	health *healthChecks // immutable after Open; nil if there is only one endpoint

	cluster clusterState

	mu          sync.Mutex
	collections map[string]*backend // by qualified name; guarded by mu
}

// Open connects to etcd. ctx bounds the call. The code of the error is
//   - Unavailable if no member answers within [Options.Timeout],
//   - Unauthorized if etcd does not accept the user or the password,
//   - Forbidden if the user may not read the prefix,
//   - Unsupported if etcd is too old.
func Open(ctx context.Context, o Options) (*DB, error) {
	o = o.withDefaults()
	client, err := connect(ctx, o)
	if err != nil {
		return nil, addConnectionError(ctx, o, err)
	}
	db := &DB{
		options: o, client: client, collections: make(map[string]*backend),
		watches: pb.NewWatchClient(client.ActiveConnection()), leases: pb.NewLeaseClient(client.ActiveConnection()),
	}
	db.lifetime, db.cancel = context.WithCancel(context.Background())
	db.revisions.Read = func() (int64, error) { return db.readRevision(db.lifetime, freshnessTimeout) }
	err = db.identifyCluster(ctx)
	if err == nil {
		err = db.startHealthChecks()
	}
	if err != nil {
		_ = db.Close() // the first error is more useful
		return nil, addConnectionError(ctx, o, err)
	}
	return db, nil
}

// Collection is like [DB.CollectionContext] without a deadline: it returns when the state
// has been read or db has been closed.
func (db *DB) Collection(s store.CollectionSpec) (*store.Collection, error) {
	return db.CollectionContext(context.Background(), s)
}

// CollectionContext adds the collection that s declares, and returns when its state has been read.
// ctx bounds only this call, and the error of ctx is returned unchanged. The error has code
// AlreadyExists if the database has a collection of the same plural and group, Corrupt if the
// prefix holds other data, and Unavailable if db is closed meanwhile.
func (db *DB) CollectionContext(ctx context.Context, s store.CollectionSpec) (*store.Collection, error) {
	s = s.WithDefaults()
	b := newBackend(db, s)
	if err := db.add(b); err != nil {
		return nil, err
	}
	defer db.goroutines.Done()
	lifetime, stop := context.WithCancel(db.lifetime)
	stopLoading := context.AfterFunc(ctx, stop)
	err := db.start(lifetime, b)
	if !stopLoading() && err == nil {
		err = ctx.Err() // ctx ended after the load and has canceled lifetime
	}
	if err != nil {
		stop()
		db.mu.Lock()
		delete(db.collections, b.name)
		db.mu.Unlock()
		if db.lifetime.Err() != nil {
			return nil, errClosed
		}
		return nil, requestError(ctx, b.name, err)
	}
	context.AfterFunc(db.lifetime, stop)
	stats := b.Stats()
	db.options.Trace.Loaded(b.name, stats.Objects, int64(stats.Oldest), int64(stats.Newest), time.Since(b.created))
	return store.New(s, b), nil
}

// add adds b to the collections, and makes Close wait until b is loaded.
func (db *DB) add(b *backend) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.lifetime.Err() != nil:
		return errClosed
	case db.collections[b.name] != nil:
		return &listwatch.Error{
			Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", b.name),
		}
	}
	db.collections[b.name] = b
	db.goroutines.Add(1)
	return nil
}

// start loads b, and starts a goroutine that follows etcd until lifetime ends. It returns when the
// log has reached the current revision of etcd, so that the log contains the history since the
// loaded state.
func (db *DB) start(lifetime context.Context, b *backend) error {
	if err := b.load(lifetime); err != nil {
		return err
	}
	db.goroutines.Go(func() { b.run(lifetime) })
	if err := b.catchUpAtStart(lifetime); err != nil {
		return err
	}
	return b.unreadableKeyError()
}

// Ready returns nil if the newest state of every collection can be read within 3 seconds.
// Otherwise etcd is unreachable or this server lags, and the error says which.
func (db *DB) Ready(ctx context.Context) error {
	for _, b := range db.all() {
		if err := b.catchUp(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// Compact drops all history in memory: after that, a watch that starts before the newest version
// fails with Expired. It does not compact etcd, which is the task of its operator.
func (db *DB) Compact() {
	for _, b := range db.all() {
		// First read all events so far from etcd, because events that arrived after Compact would
		// be new history. If etcd is unreachable, Compact still drops the history that the log
		// has received.
		_ = b.catchUp(db.lifetime)
		b.Compact()
	}
}

// Version returns the newest version that every collection has reached, or 0 if there is no
// collection.
func (db *DB) Version() listwatch.Version {
	var oldest listwatch.Version
	for i, b := range db.all() {
		if v := b.applied.Version(); i == 0 || v < oldest {
			oldest = v
		}
	}
	return oldest
}

// Epoch returns the ID of the etcd cluster.
func (db *DB) Epoch() string { return fmt.Sprintf("%x", db.clusterID) }

// Close ends the watches of etcd and the connection. Watchers return their remaining events
// and then an error of code Unavailable. Later requests that need etcd fail with the same
// code. The state in memory can still be listed.
func (db *DB) Close() error {
	db.mu.Lock()
	db.cancel() // with the mutex held, so that no collection is added after goroutines.Wait
	db.mu.Unlock()
	db.goroutines.Wait()
	for _, b := range db.all() {
		b.CloseWithError(errClosed)
	}
	return db.client.Close()
}

func (db *DB) all() []*backend {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Collect(maps.Values(db.collections))
}
