package harness

import (
	"strings"
)

// An Ability is what a target can do for a case, or a set of that.
type Ability uint

const (
	// Writes: objects can be written, by [Site.Store].
	Writes Ability = 1 << iota
	// Alone: the collection begins empty, and nobody else writes to it.
	SoleWriter
	// Dense: its versions have no holes, so that the write after N is N+1.
	ConsecutiveVersions
	// Compacts: history can be forgotten, by [Site.Compact].
	Compacts
	// Kubernetes: the collection is at its path in Kubernetes, where objects can be read and written as well.
	KubernetesPaths
	// Spaces: there are namespaces, any number of them, and the URL is that of all.
	Namespaces
	// Fields: spec.phase is a field that a selector may name.
	FieldSelectors
	// Setups: the server can be set up as the case wants it.
	Configurable
	// Replicas: there can be a second server over the same collection, by [Site.Replica].
	Replicas
	// Lives: there can be a second, unrelated collection at the same time, as after a restart that lost everything.
	UnrelatedCollection
	// Drains: the server can be told to end all watches, by [Site.Drain].
	Drains
	// Counts: the server tells how many watches are open, by [Site.Watches].
	CountsWatches
	// Inside: the case reaches into this module's server, so that it can have no other target.
	InProcess
)

var abilityNames = []string{"writes", "alone", "dense", "compacts", "kubernetes", "spaces", "fields", "setups", "replicas", "lives", "drains", "counts", "inside"}

// lacks say in a report that an ability is not there.
var lacks = map[Ability]string{
	Writes:              "nobody can write objects here",
	SoleWriter:          "others may write here as well",
	ConsecutiveVersions: "versions may have holes here",
	Compacts:            "history can't be told to go here",
	KubernetesPaths:     "there are no paths of Kubernetes' API here",
	Namespaces:          "the URL is that of one namespace",
	FieldSelectors:      "there is no field to select by here",
	Configurable:        "the server can't be set up as the case wants it",
	Replicas:            "there is no second server over the same objects",
	UnrelatedCollection: "there is no second collection that is unrelated",
	Drains:              "the server can't be told to end its watches",
	CountsWatches:       "the server does not tell how many watches are open",
	InProcess:           "the case reaches into the server of this module",
}

// Lack says what it means that nothing in the set is there. Where nobody can write, nothing else counts, and the same goes for what is
// only inside.
func (a Ability) Lack() string {
	switch {
	case a&InProcess != 0:
		return lacks[InProcess]
	case a&Writes != 0:
		return lacks[Writes]
	}
	var all []string
	for i := range abilityNames {
		if a&(1<<i) != 0 {
			all = append(all, lacks[1<<i])
		}
	}
	return strings.Join(all, "; ")
}

// String names what is in the set.
func (a Ability) String() string {
	var names []string
	for i, name := range abilityNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
