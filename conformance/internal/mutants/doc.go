// Package mutants contains only tests. They run the conformance cases against mutants, each of
// which is this module's server or client with one defect. Every case that a mutant breaks must
// detect it. Every case must have a mutant, which shows that the case can fail.
//
// This package also contains the cases that test the WebSocket protocol frame by frame. They are
// here because only this module needs them, and because their mutants are built from the same
// parts.
package mutants
