package ordered_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/listwatch/listwatch/internal/ordered"
)

// Each set is compared with a map, before and after its copies are written to.
func TestCopiesAreIndependent(t *testing.T) {
	type element struct{ key, value int }
	type pair struct {
		set  ordered.Set[element]
		want map[int]int
	}
	rapid.Check(t, func(t *rapid.T) {
		pairs := []pair{{ordered.New(2, func(a, b element) bool { return a.key < b.key }), map[int]int{}}}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i := rapid.IntRange(0, len(pairs)-1).Draw(t, "set")
			p := pairs[i]
			e := element{rapid.IntRange(0, 40).Draw(t, "key"), rapid.Int().Draw(t, "value")}
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				pairs = append(pairs, pair{p.set.Copy(), maps.Clone(p.want)})
			case 1:
				pairs = append(pairs, pair{p.set.Compacted(), maps.Clone(p.want)})
			case 2, 3, 4:
				p.set.Delete(e)
				delete(p.want, e.key)
			default:
				p.set.Put(e)
				p.want[e.key] = e.value
			}
		}
		from := rapid.IntRange(0, 40).Draw(t, "from")
		for i, p := range pairs {
			var want, tail, all, ascended []element
			for key, value := range p.want {
				want = append(want, element{key, value})
			}
			slices.SortFunc(want, func(a, b element) int { return cmp.Compare(a.key, b.key) })
			for _, e := range want {
				if e.key >= from {
					tail = append(tail, e)
				}
			}
			p.set.Scan(func(e element) bool { all = append(all, e); return true })
			p.set.Ascend(element{key: from}, func(e element) bool { ascended = append(ascended, e); return true })
			got, ok := p.set.Get(element{key: from})
			value, exists := p.want[from]
			rank := p.set.Rank(element{key: from})
			if !slices.Equal(all, want) || !slices.Equal(ascended, tail) || p.set.Len() != len(want) ||
				rank != len(all)-len(tail) || ok != exists || got.value != value {
				t.Fatalf("set %d of %d, from %d: got %v, %v, %v %v, length %d, rank %d; want %v", i, len(pairs), from,
					all, ascended, got, ok, p.set.Len(), rank, want)
			}
		}
	})
}
