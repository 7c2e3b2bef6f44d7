//go:build linux

package http3

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

var lossTime = flag.Duration("for", 20*time.Second, "the duration of a measurement with loss")

// protocols are compared by the benchmarks.
var protocols = []struct {
	name   string
	http3  bool
	config h2.Config
}{
	{"HTTP2", false, h2.Config{}},
	{"HTTP2-net-http", false, h2.Config{NetHTTP: true}},
	{"HTTP3", true, h2.Config{}},
}

// serve serves s at host as well, and returns the URL of watches of all changes from now on.
func (s *server) serve(b *testing.B, host string, http3 bool, c h2.Config) string {
	b.Helper()
	if http3 {
		s.kill()
		s.addr = &net.UDPAddr{IP: net.ParseIP(host)}
		s.listen(b)
		return s.url(s.watch())
	}
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", host+":0")
	if err != nil {
		b.Fatal(err)
	}
	hs := &http.Server{Handler: s.watches, TLSConfig: s.tls.Clone()}
	h2.Configure(hs, c)
	go hs.ServeTLS(l, "", "") // ends with the benchmark
	b.Cleanup(func() { hs.Close() })
	return "https://" + l.Addr().String() + "/things" + s.watch()
}

var padding = strings.Repeat("x", 700) // the event has 1 KiB

func (s *server) publish(b *testing.B, name string) {
	b.Helper()
	s.putObject(b, name,
		fmt.Appendf(nil, `{"metadata":{"name":%q},"sent":%d,"text":%q}`, name, time.Now().UnixNano(), padding))
}

// BenchmarkIdle measures the memory of 1,000 watches that have received one event. More iterations
// do not change the result.
func BenchmarkIdle(b *testing.B) {
	for _, streams := range []int{100, 1} {
		for _, p := range protocols {
			b.Run(fmt.Sprintf("streams=%d/%s", streams, p.name), func(b *testing.B) {
				for b.Loop() {
					s := start(b, func(ws *watchserver.Server) { ws.Detach = true })
					url := s.serve(b, "127.0.0.1", p.http3, p.config)
					before := measure()
					l := startLoad(b, loadSpec{URL: url, HTTP3: p.http3, Connections: 1000 / streams, Streams: streams})
					s.publish(b, "a")
					l.wait(b, 1000)
					after := measure()
					for i, unit := range []string{"heap-B/watch", "stack-B/watch", "rss-B/watch", "goroutines/watch"} {
						b.ReportMetric((after[i]-before[i])/1000, unit)
					}
				}
			})
		}
	}
}

func measure() [4]float64 {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var size, resident int64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		fmt.Sscan(string(text), &size, &resident)
	}
	return [4]float64{
		float64(m.HeapInuse), float64(m.StackInuse), float64(resident) * float64(os.Getpagesize()),
		float64(runtime.NumGoroutine()),
	}
}

// BenchmarkFanout measures the processor time of the server for each delivery to 1,000 watches on
// ten connections.
func BenchmarkFanout(b *testing.B) {
	for _, burst := range []int{1, 16} {
		for _, p := range protocols {
			b.Run(fmt.Sprintf("burst=%d/%s", burst, p.name), func(b *testing.B) {
				s := start(b, func(ws *watchserver.Server) { ws.Detach = true })
				url := s.serve(b, "127.0.0.1", p.http3, p.config)
				l := startLoad(b, loadSpec{URL: url, HTTP3: p.http3, Connections: 10, Streams: 100})
				before := processorTime(b)
				for b.Loop() {
					for range burst {
						s.publish(b, "a")
					}
					l.wait(b, burst*1000)
				}
				used := processorTime(b) - before
				b.ReportMetric(float64(used.Nanoseconds())/float64(1000*burst*b.N), "cpu-ns/delivery")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkLoss measures the latency over a link with a round trip of 40 ms. The watches on one
// connection receive 100 events a second in turn, which is less than the link can carry.
func BenchmarkLoss(b *testing.B) {
	for _, percent := range []int{0, 2} {
		for _, watches := range []int{1, 20} {
			for _, p := range protocols {
				if p.config.NetHTTP {
					continue // TCP behaves the same
				}
				b.Run(fmt.Sprintf("loss=%d/watches=%d/%s", percent, watches, p.name), func(b *testing.B) {
					for b.Loop() {
						measureLoss(b, float64(percent)/100, watches, p.http3)
					}
				})
			}
		}
	}
}

func measureLoss(b *testing.B, loss float64, watches int, http3 bool) {
	newLink(b, 20*time.Millisecond, loss)
	s := start(b, func(ws *watchserver.Server) { ws.Detach = true })
	url := s.serve(b, serverIP, http3, h2.Config{})
	l := startLoad(b, loadSpec{URL: url, HTTP3: http3, Connections: 1, Streams: watches, Names: true}, "ip", "netns",
		"exec", namespace)
	sent := 0
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(*lossTime); time.Now().Before(end); sent++ {
		<-tick.C
		s.publish(b, fmt.Sprintf("n-%d", sent%watches))
	}
	p50, p95, p99, last := l.wait(b, sent)
	for name, d := range map[string]time.Duration{"p50-ms": p50, "p95-ms": p95, "p99-ms": p99, "max-ms": last} {
		b.ReportMetric(float64(d.Microseconds())/1000, name)
	}
	b.ReportMetric(0, "ns/op")
}
