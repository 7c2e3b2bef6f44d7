//go:build !race

package harness

// Raced reports whether the race detector is enabled.
const Raced = false
