package benchmarks

import (
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// idleProfile is the file to which BenchmarkIdleStreams writes a heap profile. Set -memprofilerate
// 512 for a useful sample.
var idleProfile = flag.String("idleprofile", "", "write a heap profile of idle watches to `file`")

// BenchmarkIdle measures the memory of an idle watch: heap and stacks in use, resident
// memory and goroutines, each divided by the 5,000 watches. "floor-tls" shows the memory of
// crypto/tls itself. More iterations do not change the result, so run it with -benchtime 1x.
func BenchmarkIdle(b *testing.B) {
	const watchers = 5000
	tunnels := variant{
		"websocket-h2-detached",
		clients{Kind: "frames", Streams: 100, Refresh: 4 << 10, Tunnels: true},
		func(tb testing.TB, l net.Listener) publisher {
			return startServerWith(tb, l, &websocket.Server{}, true, h2.Config{ExtendedConnect: true})
		},
	}
	for _, c := range append(append(variants(), tunnels), overTLS()...) {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p := c.serve(b)
				before := readFootprint()
				l := startLoad(b, c.clients, p.Addr(), watchers)
				p.Publish() // after its first event a watch has allocated all its buffers
				l.wait(1)
				readFootprint().minus(before).report(b, watchers)
			}
		})
	}
}

// BenchmarkIdleStreams measures the memory of idle HTTP/2 watches, 100 on each connection. Then it
// measures the time from a write until the only watcher of the written object has received the
// event. The load process reports this over a pipe. A million watches need 10,000 connections
// (twice as many files as usual limits allow) and up to 3 GiB for both processes.
func BenchmarkIdleStreams(b *testing.B) {
	const events = 1000
	for _, watchers := range []int{100_000, 1_000_000} {
		for _, secure := range []bool{false, true} {
			b.Run(fmt.Sprintf("watchers=%d/tls=%v", watchers, secure), func(b *testing.B) {
				for b.Loop() {
					s := startServer(b, listen(b, secure), h2.Server{}, true)
					before := readFootprint()
					c := clients{Kind: "frames", TLS: secure, Streams: 100, Refresh: 1 << 20, Quiet: watchers / events}
					l := startLoad(b, c, s.Addr(), watchers)
					readFootprint().minus(before).report(b, float64(watchers))
					b.ReportMetric(residentBytes()/(1<<20), "rss-MiB")
					writeIdleProfile(b)
					measureSingleEvents(s, l, events).report(b, "event")
				}
			})
		}
	}
}

func writeIdleProfile(b *testing.B) {
	if *idleProfile == "" {
		return
	}
	f, err := os.Create(*idleProfile)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := pprof.WriteHeapProfile(f); err != nil {
		b.Fatal(err)
	}
}

// measureSingleEvents writes one object in each of the namespaces n-0, n-1 and so on, which have
// one watcher each. It returns the time from each write until the watcher has the event.
func measureSingleEvents(s *server, l *load, events int) (taken samples) {
	for i := range events {
		start := time.Now()
		s.put(listwatch.Key{Namespace: fmt.Sprintf("n-%d", i), Name: "one"}, nil)
		l.waitForDeliveries(1)
		taken = append(taken, time.Since(start))
	}
	return taken
}

type footprint struct{ heap, stack, resident, goroutines float64 }

func (f footprint) minus(g footprint) footprint {
	return footprint{f.heap - g.heap, f.stack - g.stack, f.resident - g.resident, f.goroutines - g.goroutines}
}

// report reports f divided by the number of watches.
func (f footprint) report(b *testing.B, watches float64) {
	b.ReportMetric(f.heap/watches, "heap-B/watch")
	b.ReportMetric(f.stack/watches, "stack-B/watch")
	b.ReportMetric(f.resident/watches, "rss-B/watch")
	b.ReportMetric(f.goroutines/watches, "goroutines/watch")
}

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
