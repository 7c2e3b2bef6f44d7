package informer

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/listwatch/listwatch"
)

func TestHashCollisionsDoNotMixUpKeys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var x Indexer[*thing]
		x.byHash = newHashIndex[*thing](0)
		x.byHash.hash = func(k listwatch.Key) uint64 { return uint64(k.Name[0] % 2) }
		model := map[listwatch.Key]string{}
		key := func() listwatch.Key { return keyOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key")) }
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(*rapid.T) {
				k := key()
				model[k] = fmt.Sprint(len(model), rapid.IntRange(0, 9).Draw(rt, "node"))
				if err := x.Put(thingAt(k, 1, model[k])); err != nil {
					rt.Fatal(err)
				}
			},
			"delete": func(*rapid.T) {
				k := key()
				delete(model, k)
				_ = x.Delete(k)
			},
			"": func(*rapid.T) {
				for _, k := range testKeys {
					want, there := model[k]
					if got, ok := x.Get(k); ok != there || ok && got.Node != want {
						rt.Fatalf("%s: got %v, %t; want %q, %t", k, got, ok, want, there)
					}
				}
			},
		})
	})
}
