//go:build !race

package harness

// Raced is false: cases about many bytes have them all.
const Raced = false
