package etcd

import (
	"context"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/batchread"
)

// A DB is a set of collections in one etcd cluster. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	options    Options
	client     *clientv3.Client
	watches    pb.WatchClient
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
	all := make([]*backend, 0, len(db.collections))
	for _, b := range db.collections {
		all = append(all, b)
	}
	return all
}
