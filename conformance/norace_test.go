//go:build !race

package conformance_test

// largeEach is how many large objects each writer writes.
const largeEach = 3
