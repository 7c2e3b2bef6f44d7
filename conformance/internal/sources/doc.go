// Package sources has no code, only tests: every Source of this repository passes the conformance
// cases.
package sources
