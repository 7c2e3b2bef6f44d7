//go:build race

package conformance_test

// Under the race detector, which slows down compression in particular, the matrix test runs
// fewer cells with fewer events.
const (
	raceEnabled = true
	// minEvents is the minimum number of events in each cell.
	minEvents = 1500
	// otherCellEvents is the approximate maximum of events that a watcher receives in other
	// cells. A session in another cell is cut after a random number of bytes: at least
	// otherCellMinBytes, and less than otherCellMinBytes plus otherCellExtraBytes.
	otherCellEvents                        = 400
	otherCellMinBytes, otherCellExtraBytes = 8 << 10, 24 << 10
	// Each writer writes largeWritesPerWriter large objects of largeSize bytes, one after
	// every largeWriteInterval writes.
	largeWritesPerWriter, largeWriteInterval = 1, 300
	largeSize                                = 160 << 10
)
