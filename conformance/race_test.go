//go:build race

package conformance_test

// largeEach is how many large objects each writer writes. The race detector looks at every byte that is decoded.
const largeEach = 1
