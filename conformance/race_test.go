//go:build race

package conformance_test

// Under the race detector, which slows down compression in particular, the matrix test runs
// fewer cells with fewer events.
const (
	raceEnabled = true
	// minEvents is the minimum number of events in each cell.
	minEvents = 400
	// otherCellEvents is the approximate maximum of events that a watcher receives in other
	// cells. A session in another cell is cut after a random number of bytes: at least
	// otherCellMinBytes, and less than otherCellMinBytes plus otherCellExtraBytes.
	otherCellEvents                        = 100
	otherCellMinBytes, otherCellExtraBytes = 4 << 10, 8 << 10
	// Each of largeWriters writers writes largeWritesPerWriter large objects of largeSize bytes,
	// one after every largeWriteInterval writes. These objects are larger than a frame and a
	// flow-control window of HTTP/2, and than a block of zstd.
	largeWriters, largeWritesPerWriter, largeWriteInterval = 2, 1, 60
	largeSize                                              = 160 << 10
	// maxLag is the maximum lag of a watcher, in writes. It is so large that a watcher that
	// resumes has events to read from the history.
	maxLag = 250
)
