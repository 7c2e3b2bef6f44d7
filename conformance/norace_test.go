//go:build !race

package conformance_test

// See race_test.go.
const (
	raced                         = false
	minEvents                     = 6000
	elsewhereEvents               = 800
	leastElsewhere, moreElsewhere = 16 << 10, 64 << 10
	largeEach, largeEvery         = 3, 700
	largeSize                     = 1 << 20
)
