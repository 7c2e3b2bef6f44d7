package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
)

// An observedState is a complete state that a watcher, a list or an informer reported for a
// version.
type observedState struct {
	version    listwatch.Version
	projection *projection
	items      []Item
	guarantee  Guarantee
	violation  Violation
	// The state covers the keys k with k > after and, if bounded is set, k <= upTo.
	after, upTo Key
	bounded     bool
}

func (o *observedState) covers(key Key) bool {
	return (o.after == Key{} || key.compare(o.after) > 0) && (!o.bounded || key.compare(o.upTo) <= 0)
}

// verifyItem verifies a single item: a write must have produced it, and the selection must contain
// it. Later, verifyStates checks whether the item was current at the version of the state. The
// returned guarantee is zero if the item is correct.
func (c *checker) verifyItem(p *projection, it Item) (guarantee Guarantee, want string) {
	write, others := c.writes.find(it.Version, it.Key)
	switch {
	case write < 0 && others > 0:
		return ContentExact, "the key of a write of that version"
	case write < 0:
		return NoPhantom, "no object: no write has that version"
	case !p.selectsResultOf(write):
		return NoPhantom, "no object: the selection does not contain the result of that write"
	}
	if fingerprint := c.writes.all[write].After.Fingerprint; fingerprint != 0 && it.Fingerprint != 0 &&
		it.Fingerprint != fingerprint {
		return ContentExact, "fingerprint " + fingerprint.String()
	}
	return 0, ""
}

// verifyStates compares all observed states with the expected states at their versions, in one pass
// over the writes.
func (c *checker) verifyStates() {
	slices.SortStableFunc(c.states, func(a, b observedState) int { return cmp.Compare(a.version, b.version) })
	states := make(map[*projection]map[Key]listwatch.Version)
	for i := range c.states {
		states[c.states[i].projection] = make(map[Key]listwatch.Version)
	}
	next := 0
	for i := range c.states {
		for ; next < len(c.writes.all) && c.writes.all[next].Version <= c.states[i].version; next++ {
			c.applyWrite(states, int32(next))
		}
		c.compareState(&c.states[i], states[c.states[i].projection])
	}
}

// applyWrite applies a write to the states of all projections.
func (c *checker) applyWrite(states map[*projection]map[Key]listwatch.Version, write int32) {
	w := &c.writes.all[write]
	for p, state := range states {
		switch n := p.positions[write]; {
		case n == 0:
		case p.events[n-1].eventType == Deleted:
			delete(state, w.Key)
		default:
			state[w.Key] = w.Version
		}
	}
}

func (c *checker) compareState(observed *observedState, state map[Key]listwatch.Version) {
	var first Violation
	wrong := 0
	difference := func(want, got string) {
		if wrong++; wrong == 1 {
			first = observed.violation
			first.Want, first.Got = want, got+" in "+observed.violation.Got
		}
	}
	exists := make(map[Key]bool, len(observed.items))
	for _, it := range observed.items {
		v, ok := state[it.Key]
		switch {
		case exists[it.Key]:
			difference(it.Key.String()+" once", "it twice")
		case !ok:
			difference(fmt.Sprintf("no %s at version %d", it.Key, observed.version),
				fmt.Sprintf("version %d", it.Version))
		case v != it.Version:
			difference(fmt.Sprintf("%s at version %d", it.Key, v), fmt.Sprintf("version %d", it.Version))
		}
		exists[it.Key] = true
	}
	var missing []Key
	for key := range state {
		if !exists[key] && observed.covers(key) {
			missing = append(missing, key)
		}
	}
	slices.SortFunc(missing, Key.compare)
	for _, key := range missing {
		difference(fmt.Sprintf("%s at version %d", key, state[key]), "no such object")
	}
	if wrong > 1 {
		first.Want += fmt.Sprintf(" (and %d more differences)", wrong-1)
	}
	if wrong > 0 {
		first.Guarantee = observed.guarantee
		c.add(first)
	}
}
