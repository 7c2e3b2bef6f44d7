package checker

import "fmt"

// A Guarantee is a property that every watch must have. Its number is part of its ID and
// never changes.
type Guarantee uint8

// The guarantees, each with its ID. [Guarantee.Text] returns the explanation.
const (
	Ordered         Guarantee = iota + 1 // W1
	Unique                               // W2
	Reliable                             // W3
	Bookmarkable                         // W4
	Resumable                            // W5
	SnapshotExact                        // W6
	Fresh                                // W7
	ExpiryJustified                      // W8
	ContentExact                         // W9
	NoPhantom                            // W10
	Atomic                               // W11
	ListExact                            // W12
	Converged                            // W13
	InformerExact                        // W14
)

var guarantees = [...]struct{ name, sentence string }{
	Ordered: {"ordered", "within a session versions never decrease, and for each key they increase"},
	Unique:  {"unique", "a watcher gets no event twice, not even across sessions"},
	Reliable: {
		"reliable", "a watcher gets every write to its selection between its start and its last event or bookmark",
	},
	Bookmarkable: {
		"bookmark",
		"all events after a bookmark are newer; bookmarks never decrease, never carry a future version, and are only " +
			"sent on request",
	},
	Resumable: {"resume", "a watch that requests a version starts with the first later write to its selection"},
	SnapshotExact: {
		"snapshot", "the initial events are exactly the state at the version of the bookmark that ends them",
	},
	Fresh: {
		"fresh",
		"a watch from the newest state is not older than the writes acknowledged before its request or the events " +
			"that the watcher has seen; a watch from a version is not older than that version",
	},
	ExpiryJustified: {
		"expiry",
		"a watch gets Expired only if the history that it needs has been dropped, and if so, no event is skipped " +
			"silently",
	},
	ContentExact: {"content", "an event has the type, key and content of its write"},
	NoPhantom:    {"no phantom", "every event belongs to a write to the selection"},
	Atomic: {
		"transaction", "the events of one version are consecutive and in key order, without a bookmark between them",
	},
	ListExact: {"list", "a list is exactly the state at its version, which is the requested one"},
	Converged: {"convergence", "when the faults have ended, every watcher reaches the newest version in time"},
	InformerExact: {
		"informer",
		"the content of an informer is the state at its version, and its handlers see the changes of each key in order",
	},
}

// Guarantees returns all guarantees in the order of their numbers.
func Guarantees() []Guarantee {
	var all []Guarantee
	for r := Ordered; r <= InformerExact; r++ {
		all = append(all, r)
	}
	return all
}

// ID returns the short name, "W1" to "W14".
func (g Guarantee) ID() string { return fmt.Sprintf("W%d", uint8(g)) }

// Name returns one or two words for g, such as "ordered".
func (g Guarantee) Name() string {
	if g < Ordered || g > InformerExact {
		return "unknown"
	}
	return guarantees[g].name
}

// Text returns the guarantee as a sentence.
func (g Guarantee) Text() string {
	if g < Ordered || g > InformerExact {
		return "unknown guarantee"
	}
	return guarantees[g].sentence
}

// String returns the ID and the name.
func (g Guarantee) String() string { return g.ID() + " " + g.Name() }

// MarshalText returns the ID.
func (g Guarantee) MarshalText() ([]byte, error) { return []byte(g.ID()), nil }
