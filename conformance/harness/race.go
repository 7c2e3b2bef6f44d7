//go:build race

package harness

// Raced reports whether the race detector is enabled. It makes memory accesses slow, so
// cases that move a lot of data move less of it.
const Raced = true
