//go:build !race

package conformance_test

// See race_test.go for the meaning of these constants.
const (
	raceEnabled                              = false
	minEvents                                = 6000
	otherCellEvents                          = 800
	otherCellMinBytes, otherCellExtraBytes   = 16 << 10, 64 << 10
	largeWritesPerWriter, largeWriteInterval = 3, 700
	largeSize                                = 1 << 20
)
