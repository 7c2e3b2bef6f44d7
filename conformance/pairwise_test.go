package conformance_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/listwatch/listwatch/internal/racetest"
)

// A pair is a combination of values of two axes of the matrix.
type pair struct{ a, b string }

// pairs returns all pairs of values of c.
func (c cell) pairs() []pair {
	values := []string{
		"server=" + c.server.name, "wire=" + securityName(c.tls), "client=" + c.client.name,
		"framing=" + framingName(c.framing), "compression=" + c.compression.name,
	}
	var all []pair
	for i, a := range values {
		for _, b := range values[i+1:] {
			all = append(all, pair{a, b})
		}
	}
	return all
}

// pairwiseCover returns a few cells that together contain every pair of values that occurs in a
// cell. Testing them detects defects in the combination of two features. Each step adds the first
// of the cells with the most new pairs, so the result is deterministic.
func pairwiseCover(all []cell) []cell {
	missing := make(map[pair]bool)
	for _, c := range all {
		for _, p := range c.pairs() {
			missing[p] = true
		}
	}
	chosen := make(map[int]bool)
	for len(missing) > 0 {
		best, most := 0, 0
		for i, c := range all {
			news := 0
			for _, p := range c.pairs() {
				if missing[p] {
					news++
				}
			}
			if news > most {
				best, most = i, news
			}
		}
		chosen[best] = true
		for _, p := range all[best].pairs() {
			delete(missing, p)
		}
	}
	var few []cell
	for _, i := range slices.Sorted(maps.Keys(chosen)) {
		few = append(few, all[i])
	}
	return few
}

// selectCells returns the cells to test. Under the race detector or with -short, it returns a
// pairwise cover.
func selectCells(all []cell) []cell {
	if racetest.Enabled || testing.Short() {
		return pairwiseCover(all)
	}
	return all
}

func TestPairwiseCoverIsComplete(t *testing.T) {
	for name, belongs := range map[string]func(cell) bool{
		"legal": cell.isSupported, "refused": cell.isRefused, "plain": cell.isUncompressed,
	} {
		all := cellsWhere(belongs)
		few := pairwiseCover(all)
		covered := make(map[pair]bool)
		for _, c := range few {
			if !belongs(c) {
				t.Errorf("%s: the cover contains %s, which is not in the set", name, c)
			}
			for _, p := range c.pairs() {
				covered[p] = true
			}
		}
		for _, c := range all {
			for _, p := range c.pairs() {
				if !covered[p] {
					t.Fatalf("%s: no cell covers %s with %s, as in %s", name, p.a, p.b, c)
				}
			}
		}
		if len(few) == 0 || len(few) > len(all)/2 {
			t.Errorf("%s: the cover has %d of %d cells, want at most half", name, len(few), len(all))
		}
		if again := pairwiseCover(cellsWhere(belongs)); !slices.EqualFunc(few, again,
			func(a, b cell) bool { return a.String() == b.String() }) {
			t.Errorf("%s: two calls returned different covers", name)
		}
		t.Logf("%s: the cover has %d of %d cells", name, len(few), len(all))
	}
}
