package checker

import "fmt"

// A Rule is one guarantee. Its number is part of its name and never changes.
type Guarantee uint8

// The rules.
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

var rules = [...]struct{ name, sentence string }{
	Ordered:         {"ordered", "versions never decrease within a session, and grow strictly for each key"},
	Unique:          {"unique", "a watcher gets no event twice, also not from the next session"},
	Reliable:        {"reliable", "a watcher gets every write that concerns its selection, from its start to the last event or bookmark it got"},
	Bookmarkable:    {"bookmark", "after a bookmark nothing comes that is not newer; bookmarks never step back, show no version that nobody has written, and come only where they were asked for"},
	Resumable:       {"resume", "a watch that names a version begins with the first write after it that concerns the selection"},
	SnapshotExact:   {"snapshot", "initial events are exactly the state at the version of the bookmark that ends them"},
	Fresh:           {"fresh", "a start at the newest state is not older than any write acknowledged before the request, nor than what the watcher has seen; one that names a version is not older than that"},
	ExpiryJustified: {"honest 410", "a watch is Expired only where the history it needs is gone, and where it is gone nothing is skipped in silence"},
	ContentExact:    {"right", "type, key and payload of an event are those of the write"},
	NoPhantom:       {"no phantom", "every event comes from a write that concerns the selection"},
	Atomic:          {"transaction", "the events of one version come together, in key order, with no bookmark among them"},
	ListExact:       {"list", "a list is exactly the state at its version, which is the one that was asked for"},
	Converged:       {"converge", "once the faults are over every watcher comes to the newest version in time"},
	InformerExact:   {"informer", "what an informer holds is the state at its version, and its handlers see each key's changes in order"},
}

// Rules returns all rules in the order of their numbers.
func Guarantees() []Guarantee {
	var all []Guarantee
	for r := Ordered; r <= InformerExact; r++ {
		all = append(all, r)
	}
	return all
}

// ID returns "W1" to "W14".
func (r Guarantee) ID() string { return fmt.Sprintf("W%d", uint8(r)) }

// Name returns a word or two for r, such as "ordered".
func (r Guarantee) Name() string {
	if r < Ordered || r > InformerExact {
		return "unknown"
	}
	return rules[r].name
}

// Sentence returns what r demands.
func (r Guarantee) Text() string {
	if r < Ordered || r > InformerExact {
		return "unknown rule"
	}
	return rules[r].sentence
}

// String returns ID and Name.
func (r Guarantee) String() string { return r.ID() + " " + r.Name() }

// MarshalText returns ID.
func (r Guarantee) MarshalText() ([]byte, error) { return []byte(r.ID()), nil }
