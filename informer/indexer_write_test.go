package informer

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"weak"

	"github.com/listwatch/listwatch"
)

func TestReplacedObjectsAreReleased(t *testing.T) {
	const n = 2000
	for _, order := range []struct {
		name  string
		names []int
	}{{"in key order", ascending(n)}, {"in random order", rand.Perm(n)}} {
		t.Run(order.name, func(t *testing.T) {
			var x Indexer[*thing]
			if err := x.AddIndex("body",
				func(i *Item[*thing]) []string { return []string{i.Key.Name[:5], i.Key.Name} }); err != nil {
				t.Fatal(err)
			}
			put := func(round int) (written []weak.Pointer[thing]) {
				for _, name := range order.names {
					v := &thing{}
					v.Name = fmt.Sprintf("object-%06d", name)
					if err := x.Put(&Item[*thing]{
						Key: v.Key(), Version: listwatch.Version(round),
						Value: v,
					}); err != nil {
						t.Fatal(err)
					}
					written = append(written, weak.Make(v))
				}
				return written
			}
			replaced := put(1)
			put(2)
			runtime.GC()
			held := 0
			for _, v := range replaced {
				if v.Value() != nil {
					held++
				}
			}
			// Nodes of the tree still hold some replaced objects in unused slots.
			if held > n/10 {
				t.Errorf("%d of %d replaced objects are still referenced", held, n)
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
