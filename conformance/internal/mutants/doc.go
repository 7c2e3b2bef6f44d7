// Package mutants has no code, only tests: the conformance cases run against mutants, which are
// this module's server or client with one defect each. Every case that a mutant breaks must
// detect it, and every case must have a mutant, which shows that the case can fail.
//
// The cases of the WebSocket protocol, frame by frame, are tests of this package, too: only this
// module needs them, and their mutants have the same parts as the others.
package mutants
