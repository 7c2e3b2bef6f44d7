//go:build race

package harness

// RaceEnabled reports whether the race detector is enabled. The race detector is slow, so
// cases that move a lot of data move less when it is enabled.
const RaceEnabled = true
