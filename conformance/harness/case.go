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
	"context"
	"slices"
	"strings"
)

// A Level is the strength of a rule.
type Level string

// The levels. Must and Should apply to every implementation, and Promise only to this
// module. A Measurement has no verdict.
const (
	Must        Level = "M"
	Should      Level = "S"
	Promise     Level = "Q"
	Measurement Level = "I"
)

// Name returns the English name of l: must, should, promise or figure.
func (l Level) Name() string {
	switch l {
	case Must:
		return "must"
	case Should:
		return "should"
	case Promise:
		return "promise"
	case Measurement:
		return "figure"
	}
	return string(l)
}

// Meaning explains l in one sentence.
func (l Level) Meaning() string {
	switch l {
	case Must:
		return "every implementation must follow the rule"
	case Should:
		return "an implementation should follow the rule unless it has a good reason not to"
	case Promise:
		return "this module follows the rule; other implementations need not"
	case Measurement:
		return "the case measures a value and has no verdict"
	}
	return ""
}

// Name returns the English name of s: server, client or both.
func (s Subject) Name() string {
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

// A Mode is an environment in which a case runs. The value of a Mode is the letter that lists of
// cases show for it.
type Mode byte

const (
	// RealTime runs the case with real sockets and the real clock.
	RealTime Mode = 'r'
	// FakeTime runs the case in a testing/synctest bubble, whose clock is fake. Only go test
	// can do that.
	FakeTime Mode = 'f'
	// UnderFaults marks a case that has no function of its own: a run of the whole system under
	// faults checks the rule of the case.
	UnderFaults Mode = 'x'
)

// RunsIn reports whether c runs in mode m.
func (c Case) RunsIn(m Mode) bool { return slices.Contains(c.Modes, m) }

// ModeLetters returns the letters of the modes of c, such as "fr".
func (c Case) ModeLetters() string {
	var letters []byte
	for _, m := range c.Modes {
		letters = append(letters, byte(m))
	}
	return string(letters)
}

// AllTransports is the value of [Case.Transports] that names every transport.
const AllTransports = "h1 h2 ws"

// A Case is a rule of the protocol and the function that tests it.
type Case struct {
	// ID identifies the case. It has the form group/name and never changes.
	ID      string
	Level   Level
	Subject Subject
	// Transports lists the transports to which the rule applies: any of h1, h2 and ws,
	// separated by spaces.
	Transports string
	// Applies reports whether the rule applies to a variant of these transports. If Applies is nil,
	// the rule applies to all of their variants.
	Applies func(Variant) bool
	// Modes lists the modes in which the case runs, in this order.
	Modes []Mode
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

// Group returns the part of the ID before the slash.
func (c Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// A T receives the results of a case. *testing.T implements T, and each method has the same meaning
// as in package testing.
type T interface {
	// Name returns the name of the run.
	Name() string
	// Context returns a context that is canceled at the end of the run.
	Context() context.Context
	// Cleanup registers f to be called at the end of the run, in last-in, first-out order.
	Cleanup(f func())
	// Helper marks the caller as a helper, whose lines are not reported.
	Helper()
	// Failed reports whether the run has failed.
	Failed() bool
	Log(args ...any)                   // adds a line to the report
	Logf(format string, args ...any)   // like Log, with a format string
	Error(args ...any)                 // reports a failure and continues the case
	Errorf(format string, args ...any) // like Error, with a format string
	Fatal(args ...any)                 // reports a failure and ends the case
	Fatalf(format string, args ...any) // like Fatal, with a format string
	Skipf(format string, args ...any)  // ends a case that cannot run and reports the reason
}
