package benchmarks

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport/chunked"
)

// projections returns the projections that the benchmarks compare: whole objects, objects without
// managedFields, and the fields of f.
func (f *fleet) projections() []struct{ name, fields string } {
	return []struct{ name, fields string }{
		{"whole", ""}, {"unmanaged", "-metadata.managedFields"}, {"some", f.fields},
	}
}

// BenchmarkProjection measures the share of the writes of a cluster that a watcher receives, the
// share of their bytes, and the time from a write to its event.
func BenchmarkProjection(b *testing.B) {
	for _, f := range fleets() {
		for _, p := range f.projections() {
			b.Run(f.kind+"/"+p.name, func(b *testing.B) {
				w := &writer{log: history.New(history.Options{})}
				f.start(w)
				c := watchLog(b, w.log, listwatch.Query{
					Selection:     listwatch.Selection{Projection: testkit.Projection(b, p.fields)},
					InitialEvents: listwatch.InitialEventsNo,
				})
				var events [1]listwatch.Event
				received, bytes, whole := 0, 0, 0
				var took samples
				for b.Loop() {
					r := f.next(w)
					start := time.Now()
					w.append(r)
					n, err := c.Poll(events[:])
					took = append(took, time.Since(start))
					if err != nil {
						b.Fatal(err)
					}
					if received += n; n > 0 {
						bytes += len(events[0].Object.Data)
					}
					if r.New == nil {
						r.New = r.Old
					}
					whole += len(r.New.Data)
				}
				b.ReportMetric(100*float64(received)/float64(b.N), "events-%")
				b.ReportMetric(100*float64(bytes)/float64(whole), "bytes-%")
				b.ReportMetric(took.trimmedMean(), "mean-ns/write")
			})
		}
	}
}

// BenchmarkProjectedFanout measures the CPU time of the server for each write and each of 500
// watchers. An iteration takes a second, so run it with -benchtime 5x.
func BenchmarkProjectedFanout(b *testing.B) {
	for _, f := range fleets() {
		for _, p := range f.projections() {
			b.Run(f.kind+"/"+p.name, func(b *testing.B) { benchmarkProjectedFanout(b, f, p.fields) })
		}
	}
}

func benchmarkProjectedFanout(b *testing.B, f *fleet, fields string) {
	const watchers, writes, interval = 500, 256, 4 * time.Millisecond
	s := startServer(b, listen(b, false), chunked.Server{}, false)
	f.start(&s.writer)
	l := startLoad(b, clients{Kind: "chunked", Fields: fields}, s.addr, watchers)
	ends := 0 // after the writes, all watchers receive a new object, which has the mark
	publish := func(writes int) {
		for range writes {
			s.append(f.next(&s.writer))
			time.Sleep(interval) // so that a watcher wakes up for each event
		}
		key := listwatch.Key{Name: fmt.Sprintf("end-%d%c", ends, mark)}
		s.append(history.Record{Version: s.version + 1, New: &listwatch.Object{
			Key: key, Version: s.version + 1,
			Data: fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":"%d"}}`, key.Name, s.version+1),
		}})
		ends++
		l.wait(1)
	}
	publish(1)
	runtime.GC()
	before := readUsage(b)
	for b.Loop() {
		publish(writes)
	}
	used := readUsage(b).minus(before)
	b.ReportMetric(float64(used.cpu.Nanoseconds())/float64(b.N)/writes/watchers, "cpu-ns/write/watcher")
}

// BenchmarkProjectedAppend measures the duration of an append while a number of different
// projections are watched. The watchers do not read.
func BenchmarkProjectedAppend(b *testing.B) {
	for _, f := range fleets() {
		for _, n := range []int{0, 1, 4, 16} {
			b.Run(fmt.Sprintf("%s/projections=%d", f.kind, n), func(b *testing.B) {
				w := &writer{log: history.New(history.Options{})}
				f.start(w)
				for i := range n {
					fields := strings.Join([]string{f.fields, fmt.Sprint("status.member-", i)}, ",")
					watchLog(b, w.log, listwatch.Query{
						Selection: listwatch.Selection{Projection: testkit.Projection(b, fields)},
					})
				}
				var took samples // without the time of f.next
				for b.Loop() {
					r := f.next(w)
					start := time.Now()
					w.append(r)
					took = append(took, time.Since(start))
				}
				took.report(b, "append")
				b.ReportMetric(took.trimmedMean(), "mean-ns/append")
			})
		}
	}
}

// BenchmarkReduce measures the time to reduce an object of each kind.
func BenchmarkReduce(b *testing.B) {
	for _, f := range fleets() {
		w := &writer{log: history.New(history.Options{})}
		f.start(w)
		object := w.log.Get(f.key(0))
		for _, p := range f.projections()[1:] {
			projection := testkit.Projection(b, p.fields)
			b.Run(f.kind+"/"+p.name, func(b *testing.B) {
				b.SetBytes(int64(len(object.Data)))
				for b.Loop() {
					projection.Reduce(object)
				}
			})
		}
	}
}
