package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
)

// A claim is something that says it is the state of a projection at a version.
type claim struct {
	version listwatch.Version
	p       *projection
	items   []Item
	rule    Guarantee
	where   Violation
	// after and, where bounded, upTo are the keys between which the claim says something.
	after, upTo Key
	bounded     bool
}

func (c *claim) covers(key Key) bool {
	return (c.after == Key{} || key.compare(c.after) > 0) && (!c.bounded || key.compare(c.upTo) <= 0)
}

// item judges one object of a state: it must be what a write left, and selected. Whether it was so at the version of the state is
// the claim's to find out. rule is zero where nothing is wrong.
func (c *checker) item(p *projection, it Item) (rule Guarantee, want string) {
	write, others := c.ledger.find(it.Version, it.Key)
	switch {
	case write < 0 && others > 0:
		return ContentExact, "a key that version has changed"
	case write < 0:
		return NoPhantom, "nothing: nobody wrote that version"
	case !p.selectedAfter(write):
		return NoPhantom, "nothing: that write left no object of the selection"
	}
	if payload := c.ledger.writes[write].After.Fingerprint; payload != 0 && it.Fingerprint != 0 && it.Fingerprint != payload {
		return ContentExact, "payload " + payload.String()
	}
	return 0, ""
}

// settleClaims compares all claims with the states of their versions, in one pass over the writes.
func (c *checker) settleClaims() {
	slices.SortStableFunc(c.claims, func(a, b claim) int { return cmp.Compare(a.version, b.version) })
	states := make(map[*projection]map[Key]listwatch.Version)
	for i := range c.claims {
		states[c.claims[i].p] = make(map[Key]listwatch.Version)
	}
	next := 0
	for i := range c.claims {
		for ; next < len(c.ledger.writes) && c.ledger.writes[next].Version <= c.claims[i].version; next++ {
			c.apply(states, int32(next))
		}
		c.compare(&c.claims[i], states[c.claims[i].p])
	}
}

// apply brings states over a write.
func (c *checker) apply(states map[*projection]map[Key]listwatch.Version, write int32) {
	w := &c.ledger.writes[write]
	for p, state := range states {
		switch n := p.place[write]; {
		case n == 0:
		case p.steps[n-1].what == Deleted:
			delete(state, w.Key)
		default:
			state[w.Key] = w.Version
		}
	}
}

func (c *checker) compare(cl *claim, state map[Key]listwatch.Version) {
	var first Violation
	wrong := 0
	fault := func(want, got string) {
		if wrong++; wrong == 1 {
			first = cl.where
			first.Want, first.Got = want, got+" in "+cl.where.Got
		}
	}
	there := make(map[Key]bool, len(cl.items))
	for _, it := range cl.items {
		v, ok := state[it.Key]
		switch {
		case there[it.Key]:
			fault(it.Key.String()+" once", "it twice")
		case !ok:
			fault(fmt.Sprintf("no %s at version %d", it.Key, cl.version), fmt.Sprintf("it at version %d", it.Version))
		case v != it.Version:
			fault(fmt.Sprintf("%s at version %d", it.Key, v), fmt.Sprintf("it at version %d", it.Version))
		}
		there[it.Key] = true
	}
	var missing []Key
	for key := range state {
		if !there[key] && cl.covers(key) {
			missing = append(missing, key)
		}
	}
	slices.SortFunc(missing, Key.compare)
	for _, key := range missing {
		fault(fmt.Sprintf("%s at version %d", key, state[key]), "it nowhere")
	}
	if wrong > 1 {
		first.Want += fmt.Sprintf(" (and %d more differences)", wrong-1)
	}
	if wrong > 0 {
		first.Guarantee = cl.rule
		c.add(first)
	}
}
