package benchmarks

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/store/memory"
)

// keysPerWriter is the number of objects that each writer updates in turn. Writers do not
// share objects.
const keysPerWriter = 16

var thingResource = store.CollectionSpec{Kind: "Thing"}

// thing returns the JSON of an object of about 1 KiB.
func thing(name string, i int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q},"i":%d,"data":%q}`, name, i, strings.Repeat("x", 900))
}

// BenchmarkWrites measures the updates per second, each of 1 KiB, by 1, 8 and 64 concurrent
// writers. It compares the memory store, the bolt store and bare bbolt. The bolt store also
// writes and trims its history. Bare bbolt stores the same bytes, once with one transaction
// per write and once with bbolt's Batch.
func BenchmarkWrites(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d/store=memory", writers), func(b *testing.B) {
			c,
				err := memory.Open(memory.Options{History: listwatch.Retention{Bytes: 4 << 20}}).Collection(
				thingResource)
			benchmarkUpdates(b, writers, c, err)
		})
		b.Run(fmt.Sprintf("writers=%d/store=bolt", writers), func(b *testing.B) {
			db := openFile(b, filepath.Join(b.TempDir(), "bench.db"),
				bolt.Options{History: listwatch.Retention{Bytes: 4 << 20}})
			c, err := db.Collection(thingResource)
			benchmarkUpdates(b, writers, c, err)
		})
		b.Run(fmt.Sprintf("writers=%d/store=raw-bbolt", writers), func(b *testing.B) {
			benchmarkRaw(b, writers, (*bbolt.DB).Update)
		})
		b.Run(fmt.Sprintf("writers=%d/store=raw-bbolt-batch", writers), func(b *testing.B) {
			benchmarkRaw(b, writers, (*bbolt.DB).Batch)
		})
	}
}

func openFile(b *testing.B, path string, o bolt.Options) *bolt.DB {
	b.Helper()
	db, err := bolt.Open(path, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

func benchmarkUpdates(b *testing.B, writers int, c *store.Collection, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	each(writers*keysPerWriter, func(i int) error {
		_, err := c.Create(b.Context(), thing(nameOf(i/keysPerWriter, i%keysPerWriter), -1))
		return err
	}, b.Error)
	benchmarkWriters(b, writers, func(writer, i int) error {
		name := nameOf(writer, i%keysPerWriter)
		_, err := c.Replace(b.Context(), listwatch.Key{Name: name}, thing(name, i))
		return err
	})
}

func benchmarkRaw(b *testing.B, writers int, transact func(*bbolt.DB, func(*bbolt.Tx) error) error) {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bench.db"), 0o600,
		&bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	bucket := []byte("things")
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(bucket); return err }); err != nil {
		b.Fatal(err)
	}
	benchmarkWriters(b, writers, func(writer, i int) error {
		name := nameOf(writer, i%keysPerWriter)
		data := thing(name, i)
		return transact(db, func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(name), data) })
	})
}

func nameOf(writer, i int) string { return fmt.Sprintf("w%d-%d", writer, i) }

// benchmarkWriters measures b.N writes and reports the writes per second and the 99th
// percentile of their latency.
func benchmarkWriters(b *testing.B, writers int, write func(writer, i int) error) {
	b.Helper()
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var done sync.WaitGroup
	b.ResetTimer()
	for writer := range writers {
		done.Go(func() {
			for i := 0; ; i++ {
				n := next.Add(1) - 1
				if n >= int64(b.N) {
					return
				}
				start := time.Now()
				if err := write(writer, i); err != nil {
					b.Error(err)
					return
				}
				took[n] = time.Since(start)
			}
		})
	}
	done.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// each calls f with every number from 0 to n-1, on 256 goroutines. A goroutine stops at the
// first error and passes it to report.
func each(n int, f func(i int) error, report func(...any)) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range 256 {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					report(err)
					return
				}
			}
		})
	}
	done.Wait()
}

// BenchmarkOpenFile opens a file of 100,000 objects of 1 KiB. It measures the time until the
// objects can be listed and watched, and the memory that they use.
func BenchmarkOpenFile(b *testing.B) {
	const objects = 100_000
	path := filepath.Join(b.TempDir(), "bench.db")
	db, err := bolt.Open(path, bolt.Options{History: listwatch.Retention{Bytes: 16 << 20}})
	if err != nil {
		b.Fatal(err)
	}
	c, err := db.Collection(thingResource)
	if err != nil {
		b.Fatal(err)
	}
	each(objects, func(i int) error {
		_, err := c.Create(b.Context(), thing(nameOf(i, 0), i))
		return err
	}, b.Error)
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	db, c = nil, nil
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if db, err = bolt.Open(path, bolt.Options{History: listwatch.Retention{Bytes: 16 << 20}}); err != nil {
			b.Fatal(err)
		}
		if c, err = db.Collection(thingResource); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if page, err := c.List(b.Context(), listwatch.Query{}); err != nil || len(page.Items) != objects {
			b.Fatalf("got %d objects, %v", len(page.Items), err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/open")
	runtime.KeepAlive(c)
}
