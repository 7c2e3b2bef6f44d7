package history

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/listwatch/listwatch"
)

// BenchmarkWrite measures writes to a collection of 1,000 objects without watchers. "labels" are
// updates that change a label, and "recreate" is a delete and a create.
func BenchmarkWrite(b *testing.B) {
	for _, kind := range []string{"update", "labels", "recreate"} {
		b.Run(kind, func(b *testing.B) {
			l := New(Options{Retention: listwatch.Retention{Bytes: 1 << 20}})
			var v listwatch.Version
			var now [1000]*listwatch.Object
			write := func(i int, o *listwatch.Object) {
				l.Append(Record{Version: v, Old: now[i], New: o})
				now[i] = o
			}
			var before runtime.MemStats
			for n := range b.N + 1000 {
				i, labels := n%1000, map[string]string{"app": "web", "tier": "back"}
				if n == 1000 {
					runtime.GC()
					runtime.ReadMemStats(&before)
					b.ResetTimer()
				}
				if kind == "labels" {
					labels["tier"] = fmt.Sprint(n / 1000 % 2)
				}
				if kind == "recreate" && n >= 1000 {
					v++
					write(i, nil)
				}
				v++
				o := &listwatch.Object{
					Key:     listwatch.Key{Namespace: "default", Name: fmt.Sprintf("web-7d9f-%05d", i)},
					Version: v,
				}
				o.Labels, o.Data = labels, make([]byte, 200)
				write(i, o)
			}
			b.StopTimer()
			runtime.GC()
			var after runtime.MemStats
			runtime.ReadMemStats(&after)
			b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/float64(b.N), "kept-B/op")
			runtime.KeepAlive(l)
		})
	}
}
