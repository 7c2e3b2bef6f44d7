//go:build !race

package conformance_test

// See race_test.go for the meaning of these constants.
const (
	minEvents                                              = 6000
	otherCellEvents                                        = 800
	otherCellMinBytes, otherCellExtraBytes                 = 16 << 10, 64 << 10
	largeWriters, largeWritesPerWriter, largeWriteInterval = writers, 3, 600
	largeSize                                              = 1 << 20
	maxLag                                                 = 1000
)
