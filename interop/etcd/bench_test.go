package etcd

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store/etcd"
)

const padding = 1 << 10

func largeThing(name string, n int) string {
	return fmt.Sprintf(
		`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"namespace":"default","name":%q,"uid":"0b0e0a1c-7c1f-4d55-9a57-1f5e0d2c9b11","labels":{"app":"web"}},"spec":{"n":%d,"x":%q}}`,
		name, n, strings.Repeat("x", padding))
}

// runConcurrently calls do b.N times from several goroutines and reports the calls per second.
func runConcurrently(b *testing.B, goroutines int, unit string, do func(i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range goroutines {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := do(int(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit)
}

// BenchmarkConsistentLists measures lists of one object that must not be older than any write.
// Concurrent callers share a read of the revision.
func BenchmarkConsistentLists(b *testing.B) {
	server := etcdtest.StartDurable(b)
	c := openThings(b, openDB(b, etcd.Options{Endpoints: []string{server.URL}, Prefix: "/bench"}))
	for _, readers := range []int{1, 64} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			runConcurrently(b, readers, "lists/s", func(int) error {
				_, err := c.List(b.Context(), listwatch.Query{Limit: 1})
				return err
			})
		})
	}
}

// BenchmarkWatchLatency measures the time from the start of a write until a watcher of
// another store has received the event, and until the writer has received the response.
func BenchmarkWatchLatency(b *testing.B) {
	server := etcdtest.StartDurable(b)
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/bench"}
	c, other := openThings(b, openDB(b, o)), openThings(b, openDB(b, o))
	w := watchAt(b, other, 1)
	var seen, acknowledged []time.Duration
	batch := make([]listwatch.Event, 1)
	b.ResetTimer()
	for i := range b.N {
		start := time.Now()
		done := make(chan time.Duration, 1)
		go func() {
			_, err := c.Create(context.Background(), []byte(largeThing(fmt.Sprint("a-", i), i)))
			if err != nil {
				b.Error(err)
			}
			done <- time.Since(start)
		}()
		if _, err := w.Next(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		seen = append(seen, time.Since(start))
		acknowledged = append(acknowledged, <-done)
	}
	for what, all := range map[string][]time.Duration{"event": seen, "response": acknowledged} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-"+what+"-p50")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "µs-"+what+"-p99")
	}
}

// BenchmarkStart measures the time to load 100,000 objects of 1 KiB, and their memory.
func BenchmarkStart(b *testing.B) {
	const objects, each = 100_000, 100
	server := etcdtest.StartProcess(b)
	raw := etcdtest.Dial(b, server.URL)
	var filling sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		filling.Go(func() {
			for n := next.Add(each); n <= objects; n = next.Add(each) {
				var ops []clientv3.Op
				for i := n - each; i < n; i++ {
					name := fmt.Sprintf("a-%06d", i)
					ops = append(ops, clientv3.OpPut("/bench/things.example.com/default/"+name,
						largeThing(name, int(i))))
				}
				if _, err := raw.Txn(b.Context()).Then(ops...).Commit(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	filling.Wait()
	before := testkit.HeapBytes()
	for b.Loop() {
		db, err := etcd.Open(b.Context(),
			etcd.Options{Endpoints: []string{server.URL}, Prefix: "/bench", HistoryRevisions: -1})
		if err != nil {
			b.Fatal(err)
		}
		stop, peak := make(chan struct{}), make(chan uint64)
		go func() {
			var most uint64
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
				select {
				case <-stop:
					peak <- most
					return
				case <-tick.C:
				}
			}
		}()
		c := openThings(b, db)
		close(stop)
		b.ReportMetric(float64(<-peak)/(1<<20), "MiB-peak")
		b.ReportMetric(float64(testkit.HeapBytes()-before)/(1<<20), "MiB-held")
		if page, err := c.List(b.Context(), listwatch.Query{Limit: 1}); err != nil || page.Remaining != objects-1 {
			b.Fatalf("got %d objects, error %v; want %d", page.Remaining+1, err, objects)
		}
		db.Close()
	}
}
