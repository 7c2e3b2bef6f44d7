package benchmarks

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
)

// BenchmarkConflate measures 500 watchers of 200 leases that are renewed 400 times a second in all,
// with and without conflation: the events and bytes that a watcher receives in a second, and the
// CPU time of the server as a share of one processor. "unwatched" is the share of the writes alone.
// More iterations do not change the result, so run it with -benchtime 1x.
func BenchmarkConflate(b *testing.B) {
	b.Run("unwatched", func(b *testing.B) {
		for b.Loop() {
			benchmarkConflate(b, clients{Kind: "chunked"}, chunked.Server{}, 0)
		}
	})
	for _, c := range []struct {
		clients clients
		over    transport.Server
	}{{clients{Kind: "chunked"}, chunked.Server{}}, {goHTTP2, h2.Server{}}} {
		for _, interval := range []string{"", "1s", "5s"} {
			c.clients.Conflate = interval
			b.Run(fmt.Sprintf("%s/conflate=%s", c.clients.Kind, cmp.Or(interval, "none")), func(b *testing.B) {
				for b.Loop() {
					benchmarkConflate(b, c.clients, c.over, 500)
				}
			})
		}
	}
}

func benchmarkConflate(b *testing.B, c clients, over transport.Server, watchers int) {
	const leases, perSecond, seconds = 200, 400, 20
	s := startServer(b, listen(b, false), over, false)
	f := fleetOf("leases", leases)
	f.start(&s.writer)
	if watchers > 0 {
		startLoad(b, c, s.addr, watchers)
	}
	sent := func() (events, bytes float64) {
		for _, w := range s.watch.Watches() {
			events, bytes = events+float64(w.Events), bytes+float64(w.Bytes)
		}
		return events, bytes
	}
	run := func(d time.Duration) {
		tick := time.NewTicker(time.Second / perSecond)
		defer tick.Stop()
		end := time.Now().Add(d)
		for written := 0; time.Now().Before(end); <-tick.C {
			// After a tick that was late, catch up.
			for due := int((d - time.Until(end)).Seconds() * perSecond); written < due; written++ {
				s.append(f.next(&s.writer))
			}
		}
	}
	run(6 * time.Second) // the first passes
	runtime.GC()
	before := readUsage(b)
	events, bytes := sent()
	run(seconds * time.Second)
	used := readUsage(b).minus(before)
	nowEvents, nowBytes := sent()
	each := float64(max(1, watchers)) * seconds
	b.ReportMetric((nowEvents-events)/each, "events/s/watcher")
	b.ReportMetric((nowBytes-bytes)/each, "B/s/watcher")
	b.ReportMetric(100*used.cpu.Seconds()/seconds, "cpu-%")
}

// BenchmarkConflatedAppend measures the duration of an append to a feed of 200 objects with and
// without conflation. The watcher of the feed does not read.
func BenchmarkConflatedAppend(b *testing.B) {
	for _, conflate := range []time.Duration{0, time.Second} {
		b.Run(fmt.Sprintf("conflate=%v", conflate), func(b *testing.B) {
			w := &writer{log: history.New(history.Options{})}
			watchLog(b, w.log, listwatch.Query{Conflate: conflate})
			for b.Loop() {
				w.put(listwatch.Key{Namespace: "ns", Name: fmt.Sprint(w.version % 200)}, nil)
			}
		})
	}
}

// BenchmarkConflatedCatchUp measures how long a watcher takes to read 20,000 changes of 200
// objects, with and without conflation.
func BenchmarkConflatedCatchUp(b *testing.B) {
	const changes, objects = 20_000, 200
	for _, conflate := range []time.Duration{0, time.Second} {
		b.Run(fmt.Sprintf("conflate=%v", conflate), func(b *testing.B) {
			w := &writer{log: history.New(history.Options{})}
			q := listwatch.Query{Start: listwatch.StartAt, Version: 1, Conflate: conflate}
			watchLog(b, w.log, listwatch.Query{Conflate: conflate}) // keeps the feed
			for n := range changes {
				w.put(listwatch.Key{Namespace: "ns", Name: fmt.Sprint(n % objects)}, nil)
			}
			var events [64]listwatch.Event
			read := 0
			for b.Loop() {
				c, err := w.log.Watch(context.Background(), q)
				if err != nil {
					b.Fatal(err)
				}
				read = 0
				for p := c.(listwatch.Poller); p.Progress().Version < w.version; {
					n, err := p.Poll(events[:])
					if err != nil {
						b.Fatal(err)
					}
					read += n
				}
				_ = c.Close() // returns nil
			}
			b.ReportMetric(float64(read), "events")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/changes, "ns/change")
		})
	}
}
