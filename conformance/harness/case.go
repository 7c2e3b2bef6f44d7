// Package harness holds the tools of a conformance case. A [Case] is one rule of the protocol and
// the function that tests the rule. The ID of a case never changes.
//
// A [Target] describes the server or client under test and opens an [Instance] of the server
// for each case. The case gets an [Env]: the collection, its server, and a client for one
// [Variant] of a transport. With it the case writes objects, watches them through this module's
// client, or exchanges raw bytes of HTTP/1.1, HTTP/2 and WebSocket.
//
// A case never waits to verify that no event arrives. Instead it writes a sentinel object and
// reads until that object arrives. A case that needs time to pass runs in a synctest bubble, with
// connections in memory.
package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
)

// A Strength tells which implementations a rule binds, and how strictly.
type Strength byte

// The strengths. Must and Should apply to every implementation, and Promise only to this
// module. A Measurement has no verdict.
const (
	Must Strength = iota
	Should
	Promise
	Measurement
)

// strengths holds the letter of each strength in a JSON report, its English name and its meaning.
var strengths = [...]struct{ letter, name, meaning string }{
	Must:        {"M", "must", "every implementation must follow the rule"},
	Should:      {"S", "should", "an implementation should follow the rule unless it has a good reason not to"},
	Promise:     {"Q", "promise", "this module follows the rule; other implementations need not"},
	Measurement: {"I", "figure", "the case measures a value and has no verdict"},
}

// String returns the English name of s: must, should, promise or figure.
func (s Strength) String() string { return strengths[s].name }

// Meaning explains s in one sentence.
func (s Strength) Meaning() string { return strengths[s].meaning }

// MarshalText returns the letter of s.
func (s Strength) MarshalText() ([]byte, error) { return []byte(strengths[s].letter), nil }

// UnmarshalText sets s to the strength with the given letter.
func (s *Strength) UnmarshalText(letter []byte) error {
	for i, known := range strengths {
		if known.letter == string(letter) {
			*s = Strength(i)
			return nil
		}
	}
	return &listwatch.Error{Code: listwatch.Corrupt, Message: fmt.Sprintf("unknown strength %q of a case", letter)}
}

// String returns the English name of s: server, client or both.
func (s Subject) String() string {
	switch s {
	case Server:
		return "server"
	case Client:
		return "client"
	case Both:
		return "both"
	}
	return string(s)
}

// A Subject is the side of the protocol that a rule constrains.
type Subject string

// The subjects: the server, the client, or both ends together.
const (
	Server Subject = "S"
	Client Subject = "C"
	Both   Subject = "E"
)

// A Mode is the clock with which a case runs.
type Mode byte

const (
	// RealTime runs the case with real sockets and the real clock.
	RealTime Mode = iota
	// FakeTime runs the case in a testing/synctest bubble, whose clock is fake. Only go test
	// can do that.
	FakeTime
	// BothTimes runs the case first with FakeTime and then with RealTime.
	BothTimes
	// EitherTime runs the case with FakeTime, or in real time with shorter delays if the client
	// under test is another process, which has its own clock ([Target.OwnClock]).
	EitherTime
	// UnderFaults marks a case that has no function of its own: a run of the whole system under
	// faults checks the rule of the case.
	UnderFaults
)

// Letters returns the letters that lists of cases show for m, such as "fr" for BothTimes.
func (m Mode) Letters() string { return [...]string{"r", "f", "fr", "fe", "x"}[m] }

// RunsIn reports whether c runs in mode m with this module's clients. A case of mode BothTimes runs
// in RealTime and FakeTime, and a case of mode EitherTime in FakeTime.
func (c Case) RunsIn(m Mode) bool {
	return c.Mode == m || c.Mode == BothTimes && (m == RealTime || m == FakeTime) ||
		c.Mode == EitherTime && m == FakeTime
}

// A Case is a rule of the protocol and the function that tests it.
type Case struct {
	// ID identifies the case. It has the form group/name and never changes.
	ID       string
	Strength Strength // Must if zero
	Subject  Subject  // Server if empty; see Side
	// Transports lists the transports to which the rule applies: any of h1, h2 and ws,
	// separated by spaces. If empty, the rule applies to all transports.
	Transports string
	// Applies reports whether the rule applies to a variant of these transports. If Applies is nil,
	// the rule applies to all of their variants.
	Applies func(Variant) bool
	Mode    Mode // RealTime if zero
	// Rule states the rule in one sentence and cites its authority.
	Rule string
	// CoveredBy is set if another test covers the rule ("lives in PACKAGE TestName") or if
	// the test is missing ("needs ..."). It is empty if Run tests the rule.
	CoveredBy string

	// Needs are the abilities that the target must have. Setup is the server configuration
	// that the case requires.
	Needs Ability
	Setup Setup
	Run   func(*Env)
	// RunsAlone is set if the case measures the memory or the goroutines of the whole
	// process, so that no other case may run at the same time.
	RunsAlone bool
}

// Rule returns a copy of c with the given ID and rule. With it, each entry in a list of cases
// starts with its ID and its rule.
func Rule(id, rule string, c Case) Case {
	c.ID, c.Rule = id, rule
	return c
}

// Side returns the side of the protocol that the rule of c constrains.
func (c Case) Side() Subject { return cmp.Or(c.Subject, Server) }

// AppliesTo returns the transports of c, separated by spaces.
func (c Case) AppliesTo() string { return cmp.Or(c.Transports, "h1 h2 ws") }

// Group returns the part of the ID before the slash.
func (c Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// VariantsOn returns the variants in which c runs against t.
func (c Case) VariantsOn(t Target) []Variant {
	return slices.DeleteFunc(slices.Clone(AllVariants), func(w Variant) bool {
		supported := t.Variants == nil && (!w.serverOnly || t.Abilities&InProcess != 0) ||
			slices.Contains(t.Variants, w.Name)
		return !supported || !slices.Contains(strings.Fields(c.AppliesTo()), w.Transport) ||
			c.Applies != nil && !c.Applies(w)
	})
}

// OtherVariants returns the other variants that the target supports, except WebSockets over
// HTTP/2, which most servers do not permit.
func (e *Env) OtherVariants() []Variant {
	var others []Variant
	for _, w := range (Case{}).VariantsOn(e.Target) {
		if w.Name != e.Variant.Name && !w.OpensOverHTTP2() {
			others = append(others, w)
		}
	}
	return others
}
