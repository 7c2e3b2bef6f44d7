package benchmarks

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// BenchmarkIdle measures the memory of an idle watch: heap and stacks in use, resident
// memory and goroutines, each divided by the 2,000 watches. "floor-tls" shows the memory of
// crypto/tls itself. More iterations do not change the result, so run it with -benchtime 1x.
func BenchmarkIdle(b *testing.B) {
	const watchers = 2000
	for _, c := range append(variants(), overTLS()...) {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p := c.serve(b)
				before := readFootprint()
				l := startLoad(b, c.clients, p.Addr(), watchers)
				p.Publish() // after its first event a watch has allocated all its buffers
				l.wait(1)
				held := readFootprint()
				b.ReportMetric((held.heap-before.heap)/watchers, "heap-B/watch")
				b.ReportMetric((held.stack-before.stack)/watchers, "stack-B/watch")
				b.ReportMetric((held.resident-before.resident)/watchers, "rss-B/watch")
				b.ReportMetric((held.goroutines-before.goroutines)/watchers, "goroutines/watch")
			}
		})
	}
}

type footprint struct{ heap, stack, resident, goroutines float64 }

func readFootprint() footprint {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{float64(m.HeapInuse), float64(m.StackInuse), residentBytes(), float64(runtime.NumGoroutine())}
}

// residentBytes returns the resident memory of this process, or 0 if the kernel does not
// report it.
func residentBytes() float64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	fmt.Sscan(string(data), &size, &resident)
	return float64(resident) * float64(os.Getpagesize())
}
