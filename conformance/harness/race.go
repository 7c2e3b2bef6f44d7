//go:build race

package harness

// Raced is true: the race detector observes every access to memory, so cases that handle many bytes handle fewer.
const Raced = true
