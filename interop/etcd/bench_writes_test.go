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

// A create makes object i of a run, 1 KiB large. No run makes one that another has made.
type create func(b *testing.B, run int64, i int) error

// BenchmarkWrites measures creates of objects of 1 KiB a second, by 1, 8 and 64 writers at once: on every store, and past it on what it stands on, by
// the same transaction. The files of bolt and bbolt are beside etcd's, and all wait for the disk; memory is what is left without one.
func BenchmarkWrites(b *testing.B) {
	server := etcdtest.StartDurable(b)
	db := open(b, etcd.Options{Endpoints: []string{server.URL}, Prefix: "/bench"})
	var run atomic.Int64
	for _, c := range []struct {
		store  string
		create create
	}{
		{"memory", into(memory.Open(memory.Options{}).Collection(things))},
		{"bolt", into(openFile(b).Collection(things))},
		{"raw-bbolt", intoBbolt(b, (*bbolt.DB).Update)},
		{"raw-bbolt-batch", intoBbolt(b, (*bbolt.DB).Batch)},
		{"etcd", into(db.Collection(things))},
		{"raw-etcd", intoEtcd(etcdtest.Dial(b, server.URL))},
	} {
		for _, writers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("store=%s/writers=%d", c.store, writers), func(b *testing.B) {
				r := run.Add(1)
				spread(b, writers, "writes/s", func(i int) error { return c.create(b, r, i) })
			})
		}
	}
}

func into(c *store.Collection, err error) create {
	return func(b *testing.B, run int64, i int) error {
		if err != nil {
			return err
		}
		_, err := c.Create(b.Context(), []byte(large(fmt.Sprintf("a-%d-%d", run, i), i)))
		return err
	}
}

func openFile(b *testing.B) *bolt.DB {
	b.Helper()
	db, err := bolt.Open(filepath.Join(b.TempDir(), "bench.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// intoBbolt writes what bolt does, without history, by one way of bbolt to do transactions.
func intoBbolt(b *testing.B, transact func(*bbolt.DB, func(*bbolt.Tx) error) error) create {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bench.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
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
		return transact(db, func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(name), []byte(large(name, i))) })
	}
}

func intoEtcd(client *clientv3.Client) create {
	return func(b *testing.B, run int64, i int) error {
		key := fmt.Sprintf("/raw/%d-%d", run, i)
		_, err := client.Txn(b.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, large("a", i))).Else(clientv3.OpGet(key)).Commit()
		return err
	}
}
