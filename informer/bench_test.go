package informer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
)

const benchItems = 100_000

// benchStore returns a store of 100,000 objects in 10 namespaces, with an index by node.
// There are 1,000 nodes.
func benchStore(b *testing.B) (*Indexer[*thing], []listwatch.Key) {
	b.Helper()
	x, keys := new(Indexer[*thing]), make([]listwatch.Key, benchItems)
	items := make([]*Item[*thing], benchItems)
	for i := range keys {
		keys[i] = listwatch.Key{Namespace: fmt.Sprintf("ns%d", i%10), Name: fmt.Sprintf("pod-%06d", i)}
		items[i] = thingAt(keys[i], 1, fmt.Sprintf("node-%d", i%1000))
	}
	if err := x.AddIndex("node", byNode); err != nil {
		b.Fatal(err)
	}
	if err := x.Replace(items, 1); err != nil {
		b.Fatal(err)
	}
	return x, keys
}

// BenchmarkStoreGet gets one of 100,000 objects.
func BenchmarkStoreGet(b *testing.B) {
	x, keys := benchStore(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, ok := x.Get(keys[i%benchItems]); !ok {
			b.Fatal("object not found")
		}
		i += 7919
	}
}

// BenchmarkStorePut replaces one of 100,000 objects, which is also in an index. With a
// snapshot, the write also copies the tree nodes that it changes.
func BenchmarkStorePut(b *testing.B) {
	for _, snapshot := range []bool{false, true} {
		b.Run(fmt.Sprintf("snapshot=%t", snapshot), func(b *testing.B) {
			x, keys := benchStore(b)
			items := make([]*Item[*thing], 1024)
			for i := range items {
				items[i] = thingAt(keys[i*97], 2, fmt.Sprintf("node-%d", i*97%1000))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if snapshot {
					x.Snapshot()
				}
				if err := x.Put(items[i%len(items)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkStoreList lists all of 100,000 objects, without and with a concurrent writer.
// The metric writes/list is the number of writes during one list.
func BenchmarkStoreList(b *testing.B) {
	for _, writer := range []bool{false, true} {
		b.Run(fmt.Sprintf("writer=%t", writer), func(b *testing.B) {
			x, keys := benchStore(b)
			stop, stopped := make(chan struct{}), make(chan int)
			go func() {
				writes := 0
				defer func() { stopped <- writes }()
				for writer {
					select {
					case <-stop:
						return
					default:
					}
					i := rand.IntN(benchItems)
					_ = x.Put(thingAt(keys[i], 2, "node-1"))
					writes++
				}
				<-stop
			}()
			b.ReportAllocs()
			for b.Loop() {
				if all, err := x.List(listwatch.Query{}); err != nil || len(all) != benchItems {
					b.Fatal(len(all), err)
				}
			}
			close(stop)
			b.ReportMetric(float64(<-stopped)/float64(b.N), "writes/list")
		})
	}
}

// BenchmarkStoreByIndex reads an index of 100,000 objects. Most values have 100 objects,
// and the value "few" has 10.
func BenchmarkStoreByIndex(b *testing.B) {
	x, keys := benchStore(b)
	for i := range 10 {
		_ = x.Put(thingAt(keys[i], 2, "few"))
	}
	for _, node := range []string{"node-500", "few"} {
		b.Run("under="+node, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found, err := x.ByIndex("node", node); err != nil || len(found) == 0 {
					b.Fatalf("got %d objects, %v", len(found), err)
				}
			}
		})
	}
}

// BenchmarkStoreMemory measures the memory of the store without the decoded objects, which
// have 1 KiB of JSON each. It measures without and with an index.
func BenchmarkStoreMemory(b *testing.B) {
	for _, indexes := range []int{0, 1} {
		b.Run(fmt.Sprintf("indexes=%d", indexes), func(b *testing.B) {
			for b.Loop() {
				reportMemory(b, indexes)
			}
		})
	}
}

func reportMemory(b *testing.B, indexes int) {
	const n = 20_000
	start := testkit.HeapBytes()
	objects, values := make([]*listwatch.Object, n), make([]*thing, n)
	for i := range objects {
		objects[i] = kibObject(i)
	}
	withObjects := testkit.HeapBytes()
	for i, o := range objects {
		v, err := listwatch.Decode[thing](o)
		if err != nil {
			b.Fatal(err)
		}
		values[i] = &v
	}
	withValues := testkit.HeapBytes()
	x := new(Indexer[*thing])
	for i := range indexes {
		_ = x.AddIndex(fmt.Sprint(i), byNode)
	}
	items := make([]*Item[*thing], n)
	for i, o := range objects {
		items[i] = newItem(o, values[i])
		objects[i] = nil
	}
	if err := x.Replace(items, 1); err != nil {
		b.Fatal(err)
	}
	clear(items)
	end := testkit.HeapBytes()
	decoded := float64(withValues-withObjects) / n
	overhead := float64(end-start)/n - decoded - 3*8 // without the three slices of this function
	b.ReportMetric(decoded, "decoded-B/item")
	b.ReportMetric(overhead, "overhead-B/item")
	b.ReportMetric(100*overhead/decoded, "overhead-%")
	runtime.KeepAlive([]any{x, objects, values, items})
}

func kibObject(i int) *listwatch.Object {
	data := fmt.Sprintf(
		`{"metadata":{"name":"pod-%06d","namespace":"namespace-%d","resourceVersion":"%d","uid":"8a1e5c5e-0000-4000-8000-%012d",`+
			`"labels":{"app":"web","tier":"front"},"annotations":{"note":%q}},"node":"node-%d"}`,
		i, i%10, i+1, i, strings.Repeat("x", 780), i%1000)
	o, err := listwatch.ParseObject([]byte(data))
	if err != nil {
		panic(err)
	}
	return o
}

// BenchmarkQueueEvent queues and pops one update while 100,000 objects are known. It does
// not measure the creation of the item.
func BenchmarkQueueEvent(b *testing.B) {
	x, keys := benchStore(b)
	f := &DeltaFIFO[*thing]{KnownObjects: x}
	items := make([]*Item[*thing], 1024)
	for i := range items {
		items[i] = thingAt(keys[i*97], 0, "node")
	}
	handle := func(Deltas[*thing], bool) error { return nil }
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := f.Update(items[i%len(items)]); err != nil {
			b.Fatal(err)
		}
		if err := f.Pop(context.Background(), handle); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkQueueReplace queues and pops a list of 100,000 objects. It measures a first
// list, in which all objects are new, and a list without changes.
func BenchmarkQueueReplace(b *testing.B) {
	x, _ := benchStore(b)
	var items []*Item[*thing]
	for i := range x.Items() {
		items = append(items, i)
	}
	for name, known := range map[string]*Indexer[*thing]{"first": {}, "again": x} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := &DeltaFIFO[*thing]{KnownObjects: known}
				if err := f.Replace(items, 1); err != nil {
					b.Fatal(err)
				}
				for f.Len() > 0 {
					_ = f.Pop(context.Background(), func(Deltas[*thing], bool) error { return nil })
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchItems, "ns/object")
		})
	}
}
