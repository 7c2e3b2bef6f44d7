package benchmarks

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkFanout measures the server's cost to deliver one event of 1 KiB to one watcher:
// CPU of the server process, write calls and allocations, for single events and for bursts
// of 16. Compare chunked and websocket with "floor", a bare TCP server in the same
// run.
func BenchmarkFanout(b *testing.B) {
	for _, watchers := range []int{100, 1000, 5000} {
		for _, burst := range []int{1, 16} {
			for _, c := range slices.Concat(variants(), byReader(), overTLS()) {
				b.Run(fmt.Sprintf("watchers=%d/burst=%d/%s", watchers, burst, c.name), func(b *testing.B) {
					benchmarkFanout(b, c, watchers, burst)
				})
			}
		}
	}
}

func benchmarkFanout(b *testing.B, c variant, watchers, burst int) {
	p := c.serve(b)
	l := startLoad(b, c.clients, p.Addr(), watchers)
	publish := func() {
		for range burst {
			p.Publish()
		}
		l.wait(burst)
	}
	for range 5 {
		publish() // let buffers and goroutine stacks reach their final size
	}
	runtime.GC()
	rounds := 0
	before := readUsage(b)
	for b.Loop() {
		publish()
		rounds++
	}
	used := readUsage(b).minus(before)
	deliveries := float64(rounds * burst * watchers)
	b.ReportMetric(float64(used.cpu.Nanoseconds())/deliveries, "cpu-ns/delivery")
	b.ReportMetric(float64(used.writes)/deliveries, "writes/delivery")
	b.ReportMetric(float64(used.mallocs)/deliveries, "allocs/delivery")
}

// usage holds the resources that this process has used, since its start or between two readings.
type usage struct {
	cpu     time.Duration
	writes  int64 // write system calls
	mallocs uint64
}

func readUsage(tb testing.TB) usage {
	tb.Helper()
	cpu, err := processorTime()
	if err != nil {
		tb.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{
		cpu:    cpu,
		writes: writeCalls(), mallocs: m.Mallocs,
	}
}

// writeCalls returns the kernel's count of write system calls, or 0 if it is not available.
func writeCalls() (n int64) {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	var ignored string
	fmt.Sscanf(string(data), "rchar: %s\nwchar: %s\nsyscr: %s\nsyscw: %d", &ignored, &ignored, &ignored, &n)
	return n
}

func (u usage) minus(v usage) usage {
	return usage{u.cpu - v.cpu, u.writes - v.writes, u.mallocs - v.mallocs}
}
