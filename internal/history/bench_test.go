package history

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
)

// BenchmarkFirstPage measures a page of one object in a collection of 300,000 objects.
func BenchmarkFirstPage(b *testing.B) {
	l := New(Options{Retention: listwatch.Retention{Bytes: 1}})
	for i := range 300_000 {
		v := listwatch.Version(i + 1)
		l.Append(Record{Version: v, New: thing(listwatch.Key{Namespace: "a", Name: fmt.Sprint(i)}, v, nil, "n1")})
	}
	for name, namespace := range map[string]string{"all": "", "namespace": "a"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				p, err := l.List(b.Context(), listwatch.Query{
					Selection: listwatch.Selection{Namespace: namespace}, Limit: 1,
				})
				if err != nil || p.Remaining != 299_999 {
					b.Fatalf("got %d remaining, %v", p.Remaining, err)
				}
			}
		})
	}
}

// BenchmarkWriteWithSelections measures a write that concerns 2,000 watchers, each with a selection
// of its own, until the last of them has read it. The metrics are the average and the greatest time
// until Append returns.
func BenchmarkWriteWithSelections(b *testing.B) {
	for name, selector := range map[string]string{"unequal": "a%d!=b", "shared": "app=x,a%d!=b"} {
		b.Run(name, func(b *testing.B) {
			const watchers = 2000
			l := New(Options{})
			var unread atomic.Int64
			read := make(chan struct{}, 1)
			for i := range watchers {
				c := watch(b, l, listwatch.Query{
					Selection: listwatch.Selection{Labels: testkit.Labels(b, fmt.Sprintf(selector, i))},
				})
				var events [16]listwatch.Event
				var poll func()
				poll = func() {
					n, err := 1, error(nil)
					for n > 0 {
						if n, err = c.Poll(events[:]); n > 0 && unread.Add(int64(-n)) == 0 {
							read <- struct{}{}
						}
					}
					if err == nil {
						c.Wake(poll)
					}
				}
				poll()
			}
			var total, longest time.Duration
			for i := range b.N {
				v := listwatch.Version(i + 1)
				o := thing(listwatch.Key{Name: fmt.Sprint(i)}, v, map[string]string{"app": "x", "tier": "1"}, "n1")
				unread.Store(watchers)
				began := time.Now()
				l.Append(Record{Version: v, New: o})
				took := time.Since(began)
				total, longest = total+took, max(longest, took)
				<-read
			}
			b.ReportMetric(float64(total.Nanoseconds())/1000/float64(b.N), "µs/append")
			b.ReportMetric(float64(longest.Microseconds()), "µs/longest-append")
		})
	}
}
