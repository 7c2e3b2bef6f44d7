//go:build !race

package harness

// RaceEnabled reports whether the race detector is enabled.
const RaceEnabled = false
