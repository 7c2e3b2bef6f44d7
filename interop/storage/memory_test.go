package storage

import (
	"context"
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"

	"github.com/listwatch/listwatch/store/memory"
)

func openMemory(testing.TB) database { return memory.Open(memory.Options{StartVersion: 1}) }

func TestMemory(t *testing.T) { runSuite(t, openMemory) }

// Kubernetes runs the same benchmarks over its etcd store and its watch cache, with more
// pods.

// runBenchmark calls run with a storage and the pods of a small cluster. If created is
// true, the storage already contains the pods.
func runBenchmark(b *testing.B, created bool, run func(context.Context, *fixture, storagetesting.BenchmarkData)) {
	f := newFixture(b, openMemory)
	data := storagetesting.PrepareBenchmarkData(10, 100, 50)
	if created {
		if err := storagetesting.PrecreateBenchmarkPods(b.Context(), f, data); err != nil {
			b.Fatal(err)
		}
	}
	run(b.Context(), f, data)
}

// BenchmarkMemoryWrites measures writes that run concurrently with watches and lists.
func BenchmarkMemoryWrites(b *testing.B) {
	runBenchmark(b, false, func(ctx context.Context, f *fixture, data storagetesting.BenchmarkData) {
		storagetesting.RunBenchmarkWriteThroughput(ctx, b, f, data, true, nil)
	})
}

// BenchmarkMemoryLists measures lists of the cluster, of a node and of a namespace, complete
// and in pages.
func BenchmarkMemoryLists(b *testing.B) {
	runBenchmark(b, true, func(ctx context.Context, f *fixture, data storagetesting.BenchmarkData) {
		storagetesting.RunBenchmarkStoreList(ctx, b, f, data, true)
	})
}

// BenchmarkMemoryStats measures the time to count the objects of a collection.
func BenchmarkMemoryStats(b *testing.B) {
	runBenchmark(b, true, func(ctx context.Context, f *fixture, _ storagetesting.BenchmarkData) {
		storagetesting.RunBenchmarkStoreStats(ctx, b, f)
	})
}
