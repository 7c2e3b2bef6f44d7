//go:build race

package harness

// RaceEnabled reports whether the race detector is enabled. It makes memory accesses slow, so
// cases that move a lot of data move less of it.
const RaceEnabled = true
