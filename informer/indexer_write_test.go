package informer

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/listwatch/listwatch"
)

// A large object is so large that the size of the heap shows whether it is still
// referenced.
type large struct {
	listwatch.Metadata `json:"metadata"`
	_                  [4 << 10]byte
}

func TestReplacedObjectsAreReleased(t *testing.T) {
	const n = 2000
	for _, order := range []struct {
		name  string
		names []int
	}{{"in key order", ascending(n)}, {"in random order", rand.Perm(n)}} {
		t.Run(order.name, func(t *testing.T) {
			var x Indexer[*large]
			if err := x.AddIndex("body", func(i *Item[*large]) []string { return []string{i.Key.Name[:5], i.Key.Name} }); err != nil {
				t.Fatal(err)
			}
			put := func(round int) {
				for _, name := range order.names {
					v := &large{}
					v.Name = fmt.Sprintf("object-%06d", name)
					if err := x.Put(&Item[*large]{Key: v.Key(), Version: listwatch.Version(round), Value: v}); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := heapNow()
			put(1)
			once := heapNow() - before
			put(2)
			if twice := heapNow() - before; twice > once+once/6 {
				t.Errorf("%d objects take %d KiB, but %d KiB after each was replaced", n, once>>10, twice>>10)
			}
			runtime.KeepAlive(&x)
		})
	}
}

func ascending(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func heapNow() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
