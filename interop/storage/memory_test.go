package storage

import (
	"context"
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"

	"github.com/listwatch/listwatch/store/memory"
)

func openMemory(testing.TB) database { return memory.Open(memory.Options{StartVersion: 1}) }

func TestMemory(t *testing.T) { suite(t, openMemory) }

// The benchmarks are those of etcd's store and of the watch cache over it, with fewer pods, so that they can be compared.

// benchmark gives run a storage and as many pods as a small cluster has.
func benchmark(b *testing.B, created bool, run func(context.Context, *fixture, storagetesting.BenchmarkData)) {
	f := newFixture(b, openMemory)
	data := storagetesting.PrepareBenchmarkData(10, 100, 50)
	if created {
		if err := storagetesting.PrecreateBenchmarkPods(b.Context(), f, data); err != nil {
			b.Fatal(err)
		}
	}
	run(b.Context(), f, data)
}

// BenchmarkMemoryWrites measures writes under background load of watchers and lists.
func BenchmarkMemoryWrites(b *testing.B) {
	benchmark(b, false, func(ctx context.Context, f *fixture, data storagetesting.BenchmarkData) {
		storagetesting.RunBenchmarkWriteThroughput(ctx, b, f, data, true, nil)
	})
}

// BenchmarkMemoryLists measures lists by cluster, node and namespace, whole and in pages.
func BenchmarkMemoryLists(b *testing.B) {
	benchmark(b, true, func(ctx context.Context, f *fixture, data storagetesting.BenchmarkData) {
		storagetesting.RunBenchmarkStoreList(ctx, b, f, data, true)
	})
}

// BenchmarkMemoryStats measures how long it takes to count a collection.
func BenchmarkMemoryStats(b *testing.B) {
	benchmark(b, true, func(ctx context.Context, f *fixture, _ storagetesting.BenchmarkData) {
		storagetesting.RunBenchmarkStoreStats(ctx, b, f)
	})
}
