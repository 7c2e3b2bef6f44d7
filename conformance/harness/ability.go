package harness

import (
	"errors"
	"strings"
)

// An Ability is a capability of a target that a case can require, or a set of them.
type Ability uint

const (
	// Writes means that [Instance.Store] writes objects.
	Writes Ability = 1 << iota
	// SoleWriter means that the collection starts empty and that only the case writes to
	// it.
	SoleWriter
	// ConsecutiveVersions means that the write after version N has version N+1.
	ConsecutiveVersions
	// Compacts means that [Instance.Compact] drops the history.
	Compacts
	// KubernetesPaths means that the collection is also served at its Kubernetes API paths,
	// where objects can be read and written.
	KubernetesPaths
	// Namespaces means that any number of namespaces can be used, and that the URL covers
	// all of them.
	Namespaces
	// FieldSelectors means that field selectors can name spec.phase.
	FieldSelectors
	// Configurable means that the target applies the [Setup] of the case.
	Configurable
	// FrequentBookmarks means that the target sends bookmarks as often as [Setup.Timing] says.
	FrequentBookmarks
	// Replicas means that [Instance.Replica] starts a second server for the same
	// collection.
	Replicas
	// UnrelatedCollection means that a second, unrelated collection can be opened. Cases use the
	// second collection to simulate a server that lost all data in a restart.
	UnrelatedCollection
	// Restarts means that [Env.RestartServer] works.
	Restarts
	// Drains means that [Instance.Drain] ends all watches.
	Drains
	// CountsWatches means that [Instance.OpenWatches] returns the number of open watches.
	CountsWatches
	// StreamsState means that the client under test requests the current state as initial events of
	// a watch, and not as a list. The suite's own client does.
	StreamsState
	// Expires means that an object ends when it was not written for [Setup.TTL].
	Expires
	// InProcess means that the target runs this module's server in the process of the case. A case
	// that needs InProcess uses internals of this server.
	InProcess
)

// OwnCollection is the set that most cases of a server need: an empty collection that only the case
// writes to.
const OwnCollection = Writes | SoleWriter

// Properties is the set of abilities that describe the server or client and not its adapter. A rule
// that needs one of them does not concern a server or client without it.
const Properties = ConsecutiveVersions | KubernetesPaths | Namespaces | FieldSelectors | StreamsState | Expires

var abilityNames = []string{
	"writes", "sole-writer", "consecutive-versions", "compacts", "kubernetes-paths", "namespaces",
	"field-selectors", "configurable", "frequent-bookmarks",
	"replicas", "unrelated-collection", "restarts", "drains", "counts-watches", "streams-state", "expires",
	"in-process",
}

// lackTexts holds the text that a report shows for each missing ability.
var lackTexts = map[Ability]string{
	Writes:              "the target does not let the suite write objects",
	SoleWriter:          "other clients may write to the collection",
	ConsecutiveVersions: "versions need not be consecutive",
	Compacts:            "the target cannot drop its history on request",
	KubernetesPaths:     "the target does not serve Kubernetes API paths",
	Namespaces:          "the URL covers a single namespace",
	FieldSelectors:      "the target has no field for field selectors",
	Configurable:        "the target cannot be configured for the case",
	FrequentBookmarks:   "the target cannot send bookmarks every few milliseconds",
	Replicas:            "the target has no second server for the same objects",
	UnrelatedCollection: "the target cannot open a second, unrelated collection",
	Restarts:            "the target cannot be restarted",
	Drains:              "the target cannot end its watches on request",
	CountsWatches:       "the server does not report the number of open watches",
	StreamsState:        "the client lists and then watches instead of requesting initial events",
	Expires:             "the target has no objects that end by themselves",
	InProcess:           "the case uses internals of this module's server",
}

// MissingReason returns the reasons for skipping a case on a target that lacks the abilities in the
// set. If the set contains InProcess or Writes, MissingReason returns only the reason for that
// ability, because a target without it also lacks most other abilities.
func (a Ability) MissingReason() string {
	switch {
	case a&InProcess != 0:
		return lackTexts[InProcess]
	case a&Writes != 0:
		return lackTexts[Writes]
	}
	var all []string
	for i := range abilityNames {
		if a&(1<<i) != 0 {
			all = append(all, lackTexts[1<<i])
		}
	}
	return strings.Join(all, "; ")
}

// String returns the names of the abilities in the set, separated by spaces.
func (a Ability) String() string {
	var names []string
	for i, name := range abilityNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// MissingAbility is the error of a client under test that cannot do what a case requires.
// The case is skipped with the error's text as the reason.
type MissingAbility string

// IsMissing reports whether err is a MissingAbility.
func IsMissing(err error) bool {
	_, ok := errors.AsType[MissingAbility](err)
	return ok
}

// Error returns the reason.
func (m MissingAbility) Error() string { return string(m) }
