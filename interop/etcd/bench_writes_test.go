package etcd

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/listwatch/listwatch/store/memory"
)

// A createFunc creates the i-th object of a run. Objects have 1 KiB, and different runs never
// create the same object.
type createFunc func(b *testing.B, run int64, i int) error

// BenchmarkWrites measures the number of 1 KiB objects that 1, 8 and 64 concurrent writers create
// per second, in the memory, bolt and etcd stores. For comparison, it runs the same transactions
// directly in bbolt and etcd. All files are on the same disk, and every write waits for that disk,
// except in the memory store.
func BenchmarkWrites(b *testing.B) {
	server := etcdtest.StartDurable(b)
	db := openDB(b, etcd.Options{Endpoints: []string{server.URL}, Prefix: "/bench"})
	var run atomic.Int64
	for _, c := range []struct {
		store  string
		create createFunc
	}{
		{"memory", createInStore(memory.Open(memory.Options{}).Collection(things))},
		{"bolt", createInStore(openBolt(b).Collection(things))},
		{"raw-bbolt", createInBbolt(b, (*bbolt.DB).Update)},
		{"raw-bbolt-batch", createInBbolt(b, (*bbolt.DB).Batch)},
		{"etcd", createInStore(db.Collection(things))},
		{"raw-etcd", createInEtcd(etcdtest.Dial(b, server.URL))},
	} {
		for _, writers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("store=%s/writers=%d", c.store, writers), func(b *testing.B) {
				r := run.Add(1)
				runConcurrently(b, writers, "writes/s", func(i int) error { return c.create(b, r, i) })
			})
		}
	}
}

func createInStore(c *store.Collection, err error) createFunc {
	return func(b *testing.B, run int64, i int) error {
		if err != nil {
			return err
		}
		_, err := c.Create(b.Context(), []byte(largeThing(fmt.Sprintf("a-%d-%d", run, i), i)))
		return err
	}
}

func openBolt(b *testing.B) *bolt.DB {
	b.Helper()
	db, err := bolt.Open(filepath.Join(b.TempDir(), "bench.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// createInBbolt returns a createFunc that writes directly to bbolt. It writes as the bolt store
// does, but keeps no history. transact is (*bbolt.DB).Update or (*bbolt.DB).Batch.
func createInBbolt(b *testing.B, transact func(*bbolt.DB, func(*bbolt.Tx) error) error) createFunc {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bench.db"), 0o600,
		&bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	bucket := []byte("things")
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(bucket); return err }); err != nil {
		b.Fatal(err)
	}
	return func(_ *testing.B, run int64, i int) error {
		name := fmt.Sprintf("a-%d-%d", run, i)
		return transact(db,
			func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(name), []byte(largeThing(name, i))) })
	}
}

func createInEtcd(client *clientv3.Client) createFunc {
	return func(b *testing.B, run int64, i int) error {
		key := fmt.Sprintf("/raw/%d-%d", run, i)
		_, err := client.Txn(b.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, largeThing("a", i))).Else(clientv3.OpGet(key)).Commit()
		return err
	}
}
