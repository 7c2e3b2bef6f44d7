//go:build race

package conformance_test

// Under the race detector, which slows down compression in particular, the matrix test runs
// fewer cells with fewer events.
const (
	// minEvents is the minimum number of events that each watcher receives in its own cell.
	minEvents = 400
	// otherCellEvents is the approximate maximum number of events that a watcher receives in other
	// cells. A session in another cell is cut after a random number of bytes: at least
	// otherCellMinBytes, and less than otherCellMinBytes plus otherCellExtraBytes.
	otherCellEvents                        = 100
	otherCellMinBytes, otherCellExtraBytes = 4 << 10, 8 << 10
	// Each of largeWriters writers writes largeWritesPerWriter large objects of largeSize bytes,
	// one after every largeWriteInterval writes. These objects exceed the default sizes of an
	// HTTP/2 frame and flow-control window, and the size of a zstd block.
	largeWriters, largeWritesPerWriter, largeWriteInterval = 2, 1, 60
	largeSize                                              = 160 << 10
	// maxLag is the maximum lag of a watcher, in writes. It is large enough that a watcher that
	// resumes finds unread events in the history.
	maxLag = 250
)
