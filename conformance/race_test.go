//go:build race

package conformance_test

// The race detector looks at every byte, and has compressors made anew again and again, so that a run under it has fewer of them: a cover of
// the cells, and less in each.
const (
	raced = true
	// minEvents is how many events each cell carries at least.
	minEvents = 1500
	// elsewhereEvents are how many a watcher of a cell gets over other cells, at most and about: its sessions there end after as many bytes as
	// leastElsewhere and at random up to moreElsewhere besides.
	elsewhereEvents               = 400
	leastElsewhere, moreElsewhere = 8 << 10, 24 << 10
	// largeEach is how many large objects each writer writes, one after largeEvery writes, and largeSize is how many bytes they have.
	largeEach, largeEvery = 1, 300
	largeSize             = 160 << 10
)
