package harness

import (
	"context"
	"strings"
)

// A Level says how much a rule counts.
type Level string

// A server or client must, should; or this module alone promises it; a Figure is measured, not judged.
const (
	Must        Level = "M"
	Should      Level = "S"
	Promise     Level = "Q"
	Measurement Level = "I"
)

// Word is l in a word: must, should, promise or figure.
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

// Meaning is l in a sentence.
func (l Level) Meaning() string {
	switch l {
	case Must:
		return "every implementation keeps the rule"
	case Should:
		return "an implementation keeps the rule unless it has a reason"
	case Promise:
		return "this module keeps the rule; nobody else has to"
	case Measurement:
		return "it is measured, not judged"
	}
	return ""
}

// Word is s in a word: server, client or both.
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

// A Subject is what a rule is about.
type Subject string

// A rule is about servers, about clients, or about what both make of it.
const (
	Server Subject = "S"
	Client Subject = "C"
	Both   Subject = "E"
)

// AllTransports are the transports, as [Case.On] has them.
const AllTransports = "h1 h2 ws"

// A Case is a rule of the protocol and what tests it.
type Case struct {
	// ID names it, for ever: group/name.
	ID      string
	Level   Level
	Subject Subject
	// On are the transports it is about, of h1, h2 and ws. Lane is r for real sockets, f for a bubble with a clock of its own, x for
	// a run under faults.
	Transports, Mode string
	// Says is the rule in one sentence, with its authority.
	Rule string
	// Elsewhere says where the case is, "lives in PACKAGE TestName", or what it still "needs"; empty where it is here.
	CoveredBy string

	// needs are what the target must offer, setup is what the case wants otherwise than usual.
	Needs Ability
	Setup Setup
	Run   func(*Env)
	// measures: what it looks at are the memory or the goroutines of the whole process.
	RunsAlone bool
}

// Group is the part of the id before the slash.
func (c Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// A T is whom a case tells what it finds. A *testing.T is one; the methods mean what they mean there.
type T interface {
	// Name is that of the run; Context ends with it.
	Name() string
	Context() context.Context // ends with the run
	// Cleanup has f called at the end of the run, the last one first.
	Cleanup(f func())
	// Helper marks the caller as one whose lines don't matter.
	Helper()
	// Failed reports whether an error was told.
	Failed() bool
	Log(args ...any)                   // keeps a line for the report
	Logf(format string, args ...any)   // is Log with a format
	Error(args ...any)                 // tells what is wrong, and the case goes on
	Errorf(format string, args ...any) // is Error with a format
	Fatal(args ...any)                 // tells what is wrong, and ends the case
	Fatalf(format string, args ...any) // is Fatal with a format
	Skipf(format string, args ...any)  // ends the case, which can't be run, and tells why
}
