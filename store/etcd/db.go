package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/batchread"
	"github.com/listwatch/listwatch/store"
)

// A DB is a set of collections in one etcd. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	options   Options
	client    *clientv3.Client
	watches   pb.WatchClient
	cluster   uint64
	revisions *batchread.Reader[int64] // reads the newest revision of etcd
	life      context.Context          // ends with Close
	end       context.CancelFunc
	work      sync.WaitGroup // of what Close waits for

	seen seen

	mu          sync.Mutex
	collections map[string]*backend // by qualified name; guarded by mu
}

// Open connects to etcd. Errors have code Unavailable where no member answers within [Options.Timeout], Unauthorized and Forbidden where etcd knows no
// such user or does not let it read the prefix, Unsupported where etcd is too old. ctx bounds the call.
func Open(ctx context.Context, o Options) (*DB, error) {
	o = o.withDefaults()
	client, err := connect(ctx, o)
	if err != nil {
		return nil, explained(ctx, o, err)
	}
	db := &DB{options: o, client: client, watches: pb.NewWatchClient(client.ActiveConnection()), collections: make(map[string]*backend)}
	db.life, db.end = context.WithCancel(context.Background())
	db.revisions = &batchread.Reader[int64]{Read: func() (int64, error) { return db.readRevision(db.life) }}
	err = db.greet(ctx)
	if err == nil {
		err = db.watchHealth()
	}
	if err != nil {
		_ = db.Close() // the first error says more
		return nil, explained(ctx, o, err)
	}
	return db, nil
}

// Collection is [DB.CollectionContext] without an end to its patience: it returns when the state has been read, or db is closed.
func (db *DB) Collection(r store.CollectionSpec) (*store.Collection, error) {
	return db.CollectionContext(context.Background(), r)
}

// CollectionContext adds the collection that r declares, and returns when its state has been read. ctx bounds the call, and its error passes
// unchanged; the collection lives until Close. A second one of the same plural and group is an error of code AlreadyExists; a prefix that holds
// something else is one of code Corrupt; a db that is closed, or is being closed, one of code Unavailable.
func (db *DB) CollectionContext(ctx context.Context, r store.CollectionSpec) (*store.Collection, error) {
	r = r.WithDefaults()
	name := r.QualifiedName()
	b := newBackend(db, r)
	if err := db.add(b); err != nil {
		return nil, err
	}
	defer db.work.Done()
	life, stop := context.WithCancel(db.life)
	loading := context.AfterFunc(ctx, stop)
	err := db.begin(life, b)
	if !loading() && err == nil {
		err = ctx.Err() // it came too late for the load, and has ended what follows
	}
	if err != nil {
		stop()
		db.mu.Lock()
		delete(db.collections, name)
		db.mu.Unlock()
		if db.life.Err() != nil {
			return nil, errClosed
		}
		return nil, failed(ctx, name, err)
	}
	context.AfterFunc(db.life, stop)
	s := b.Stats()
	db.options.Trace.Loaded(name, s.Objects, int64(s.Floor), int64(s.Version), time.Since(b.began))
	return store.New(r, b), nil
}

// add makes b one of the collections, and has Close wait until it is loaded.
func (db *DB) add(b *backend) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.life.Err() != nil:
		return errClosed
	case db.collections[b.name] != nil:
		return &listwatch.Error{Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", b.name)}
	}
	db.collections[b.name] = b
	db.work.Add(1)
	return nil
}

// begin reads the state of b and follows it until life ends. It returns when the log has come as far as etcd is now, so that the history that it began
// with is there.
func (db *DB) begin(life context.Context, b *backend) error {
	if err := b.load(life); err != nil {
		return err
	}
	db.work.Go(func() { b.run(life) })
	if err := b.catchUp(life); err != nil {
		return err
	}
	return b.checkKeys()
}

// Ready returns nil if every collection can be read as it is now, within 3 seconds. Otherwise it says why not: etcd is lost, or this server lags.
func (db *DB) Ready(ctx context.Context) error {
	for _, b := range db.all() {
		if err := b.catchUp(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// Version returns the newest that every collection has come to; zero where there is none.
func (db *DB) Version() listwatch.Version {
	var v listwatch.Version
	for i, b := range db.all() {
		if h := b.head.Version(); i == 0 || h < v {
			v = h
		}
	}
	return v
}

// Epoch tells this cluster from others.
func (db *DB) Epoch() string { return fmt.Sprintf("%x", db.cluster) }

// Compact forgets all history in memory: a watch from any version before the newest is Expired. What etcd keeps stays; to compact that is for
// who owns it.
func (db *DB) Compact() {
	for _, b := range db.all() {
		_ = b.catchUp(db.life) // else what it does not have yet would be history afterwards; where etcd is lost, so be it
		b.Compact()
	}
}

// Close ends the watches of etcd and the connection. Watchers read what is there for them, and then an error of code Unavailable; so is every later
// request that would need etcd. What is in memory can still be listed.
func (db *DB) Close() error {
	db.mu.Lock()
	db.end() // under the lock, so that no collection is added behind the back of Wait
	db.mu.Unlock()
	db.work.Wait()
	for _, b := range db.all() {
		b.CloseWithError(errClosed)
	}
	return db.client.Close()
}

func (db *DB) all() []*backend {
	db.mu.Lock()
	defer db.mu.Unlock()
	all := make([]*backend, 0, len(db.collections))
	for _, b := range db.collections {
		all = append(all, b)
	}
	return all
}
