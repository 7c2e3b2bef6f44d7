package informer

import (
	"strconv"
	"testing"

	"github.com/listwatch/listwatch"
)

func TestAnInboxThatWasFullOnceDoesNotKeepItsMemory(t *testing.T) {
	b := newInbox[int](0)
	for range 2 {
		for n := range 10 * keepMap {
			key := listwatch.Key{Name: strconv.Itoa(n)}
			b.push(notice[int]{key: key, now: &Item[int]{Key: key}})
		}
		before := b.pending
		for b.take() != nil {
		}
		before[listwatch.Key{}] = nil // to be seen where the inbox keeps the map
		if cap(b.order) > keepMap || len(b.pending) > 0 {
			t.Errorf("an empty inbox keeps room for %d notices, and the map of those that waited: %v", cap(b.order), len(b.pending) > 0)
		}
	}
}
