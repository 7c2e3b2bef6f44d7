package benchmarks

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
)

// writer appends objects of about 1 KiB to a log, each with a new version.
type writer struct {
	log     *history.Log
	version listwatch.Version
}

func (w *writer) put(key listwatch.Key, labels map[string]string) {
	w.version++
	w.log.Append(history.Record{Version: w.version, Old: w.log.Get(key), New: object(key, labels, w.version, 1024)})
}

// object returns an object whose JSON has about size bytes.
func object(key listwatch.Key, labels map[string]string, v listwatch.Version, size int) *listwatch.Object {
	d := store.Draft{Key: key, Labels: labels}
	d.Before = fmt.Appendf(nil,
		`{"kind":"Thing","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":`, key.Name,
		key.Namespace)
	d.After = append(append([]byte(`},"data":"`), make([]byte, size)...), `"}`...)
	for i := range size {
		d.After[10+i] = 'a' + byte(i%26)
	}
	d.After[10] = mark
	return d.Seal(v)
}

func watchLog(b *testing.B, l *history.Log, q listwatch.Query) listwatch.Poller {
	b.Helper()
	return testkit.Watch(b, l, q).(listwatch.Poller)
}

// BenchmarkAppend measures the duration of an append while 10,000 watchers of the whole collection
// sleep, read, or have stopped reading. benchmarks/results/log.txt has the results. With sleeping
// watchers the benchmark also reports the time until the last watcher has received the event.
func BenchmarkAppend(b *testing.B) {
	const watchers = 10000
	b.Run("watchers=0", func(b *testing.B) { benchmarkAppend(b, 0, false, false) })
	b.Run("asleep=10000", func(b *testing.B) { benchmarkAppend(b, watchers, true, true) })
	b.Run("driven=10000", func(b *testing.B) { benchmarkDriven(b, watchers) })
	b.Run("reading=10000", func(b *testing.B) { benchmarkAppend(b, watchers, true, false) })
	b.Run("stalled=10000", func(b *testing.B) { benchmarkAppend(b, watchers, false, false) })
}

func benchmarkAppend(b *testing.B, watchers int, read, waitForAll bool) {
	w := &writer{log: history.New(history.Options{})}
	var delivered atomic.Int64
	all := make(chan struct{}, 1)
	var readers sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	for range watchers {
		c := watchLog(b, w.log, listwatch.Query{})
		if !read {
			continue
		}
		readers.Go(func() {
			var batch [16]listwatch.Event
			for {
				n, err := c.Next(ctx, batch[:])
				if err != nil {
					return
				}
				if delivered.Add(int64(n))%int64(watchers) == 0 && waitForAll {
					all <- struct{}{}
				}
			}
		})
	}
	var appends, lastWakes samples
	keys := make([]listwatch.Key, 100)
	for i := range keys {
		keys[i] = listwatch.Key{Namespace: "ns", Name: fmt.Sprint(i)}
	}
	i := 0
	for b.Loop() {
		start := time.Now()
		w.put(keys[i%len(keys)], nil)
		appends = append(appends, time.Since(start))
		i++
		if waitForAll {
			<-all
			lastWakes = append(lastWakes, time.Since(start))
		}
	}
	cancel()
	readers.Wait()
	appends.report(b, "append")
	lastWakes.report(b, "last-wake")
}

// benchmarkDriven measures the time until the last watcher has received an event if each event
// starts a goroutine for each watcher, as in a server. In the benchmark "asleep", a goroutine of
// each watcher sleeps in Next instead.
func benchmarkDriven(b *testing.B, watchers int) {
	w := &writer{log: history.New(history.Options{})}
	var delivered atomic.Int64
	all := make(chan struct{}, 1)
	for range watchers {
		c := watchLog(b, w.log, listwatch.Query{})
		var wake func()
		drive := func() {
			var batch [1]listwatch.Event // small, because a server takes its batch from a pool
			n, err := c.Poll(batch[:])
			if err != nil {
				return // the benchmark has closed c
			}
			c.Wake(wake)
			if n > 0 && delivered.Add(int64(n))%int64(watchers) == 0 {
				all <- struct{}{}
			}
		}
		wake = func() { go drive() }
		c.Poll(nil)
		c.Wake(wake)
	}
	var lastWakes samples
	before := readUsage(b)
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		w.put(listwatch.Key{Namespace: "ns", Name: fmt.Sprint(i % 100)}, nil)
		<-all
		lastWakes = append(lastWakes, time.Since(start))
	}
	b.ReportMetric(float64(readUsage(b).minus(before).cpu.Nanoseconds())/float64(b.N*watchers), "cpu-ns/wake")
	lastWakes.report(b, "last-wake")
}

// BenchmarkSelective measures the append and delivery of an event that matches only one of
// 10,000 watchers, each of which selects a different label value.
func BenchmarkSelective(b *testing.B) {
	const watchers = 10000
	w := &writer{log: history.New(history.Options{})}
	cursors := make([]listwatch.Poller, watchers)
	labels := make([]map[string]string, watchers)
	for i := range cursors {
		s, err := listwatch.ParseLabelSelector(fmt.Sprintf("app=a%d", i))
		if err != nil {
			b.Fatal(err)
		}
		labels[i] = map[string]string{"app": fmt.Sprintf("a%d", i), "tier": "web"}
		cursors[i] = watchLog(b, w.log, listwatch.Query{Selection: listwatch.Selection{Labels: s}})
	}
	var batch [4]listwatch.Event
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		w.put(listwatch.Key{Namespace: "ns", Name: fmt.Sprint(i)}, labels[i])
		if n, err := cursors[i].Poll(batch[:]); n != 1 || err != nil {
			b.Fatalf("Poll = %d, %v", n, err)
		}
		i = (i + 1) % watchers
	}
}

// BenchmarkInitialEvents measures the initial events of a namespace of 50 objects in a
// collection of 50,000 objects, from the call of Watch to the bookmark that ends them.
func BenchmarkInitialEvents(b *testing.B) {
	const namespaces, objects = 1000, 50
	w := &writer{log: history.New(history.Options{})}
	for n := range namespaces {
		for o := range objects {
			w.put(listwatch.Key{Namespace: fmt.Sprintf("ns-%04d", n), Name: fmt.Sprintf("o-%02d", o)}, nil)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		c := watchLog(b, w.log, listwatch.Query{
			Selection: listwatch.Selection{Namespace: fmt.Sprintf("ns-%04d", i%namespaces)}, Bookmarks: true,
		})
		var batch [64]listwatch.Event
		n, err := c.Next(b.Context(), batch[:])
		if n != objects+1 || err != nil || batch[n-1].Type != listwatch.Synced {
			b.Fatalf("Next = %d, %v, last %v; want %d events and the bookmark", n, err, batch[n-1].Type, objects)
		}
		c.Close()
		i++
	}
}
