// Package racetest reports whether the race detector is enabled. With it, tests and conformance
// cases are slow.
package racetest

import "testing"

// Rounds returns n, or a tenth of n with the race detector. It is for long random tests, which the
// race detector makes up to ten times slower. It finds nothing in tests of one goroutine, and what
// it finds in others it finds in a tenth of the rounds. make test also runs them without it.
func Rounds(n int) int {
	if Enabled {
		return max(n/10, 1)
	}
	return n
}

// SkipMemory skips a test of memory with the race detector, which takes memory of its own.
func SkipMemory(t *testing.T) {
	if Enabled {
		t.Skip("make test measures memory without the race detector")
	}
}
