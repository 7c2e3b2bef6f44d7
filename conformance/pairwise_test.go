package conformance_test

import (
	"maps"
	"slices"
	"testing"
)

// A pair is a value of one axis of the matrix with one of another.
type pair struct{ a, b string }

// pairs returns all of c, with the names of their axes.
func (c cell) pairs() []pair {
	values := []string{
		"server=" + c.server.name, "wire=" + securityName(c.tls), "client=" + c.client.name, "framing=" + framingName(c.framing), "compression=" + c.compression.name,
	}
	var all []pair
	for i, a := range values {
		for _, b := range values[i+1:] {
			all = append(all, pair{a, b})
		}
	}
	return all
}

// cover returns few of all, in their order, such that each pair of values that is in one of all is in one of these: what breaks where
// two things meet shows in them. The next is always the first of those that bring the most that is new, so they are the same each time.
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

// chosen is what of all a run has time for: under the race detector it is a cover.
func selectCells(all []cell) []cell {
	if raceEnabled {
		return pairwiseCover(all)
	}
	return all
}

func TestPairwiseCoverIsComplete(t *testing.T) {
	for name, belongs := range map[string]func(cell) bool{"legal": cell.isSupported, "refused": cell.isRefused, "plain": cell.isUncompressed} {
		all := cellsWhere(belongs)
		few := pairwiseCover(all)
		covered := make(map[pair]bool)
		for _, c := range few {
			if !belongs(c) {
				t.Errorf("%s: %s is none of them", name, c)
			}
			for _, p := range c.pairs() {
				covered[p] = true
			}
		}
		for _, c := range all {
			for _, p := range c.pairs() {
				if !covered[p] {
					t.Fatalf("%s: no cell has %s and %s, of %s", name, p.a, p.b, c)
				}
			}
		}
		if len(few) == 0 || len(few) > len(all)/2 {
			t.Errorf("%s: the cover has %d cells of %d, want few", name, len(few), len(all))
		}
		if again := pairwiseCover(cellsWhere(belongs)); !slices.EqualFunc(few, again, func(a, b cell) bool { return a.String() == b.String() }) {
			t.Errorf("%s: two covers differ", name)
		}
		t.Logf("%s: %d of %d cells", name, len(few), len(all))
	}
}
