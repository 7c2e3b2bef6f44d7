package informer

import (
	"strconv"
	"testing"

	"github.com/listwatch/listwatch"
)

func TestHandlerQueueReleasesMemoryWhenEmptied(t *testing.T) {
	b := newHandlerQueue[int](0)
	for range 2 {
		for n := range 10 * maxKeptMap {
			key := listwatch.Key{Name: strconv.Itoa(n)}
			b.push(notification[int]{key: key, now: &Item[int]{Key: key}})
		}
		before := b.pending
		for b.pop() != nil {
		}
		// this key appears in b.pending only if the queue kept the map
		before[listwatch.Key{}] = nil
		if cap(b.notifications) > maxKeptMap || len(b.pending) > 0 {
			t.Errorf("the empty queue keeps capacity for %d notifications; keeps its map: %v", cap(b.notifications),
				len(b.pending) > 0)
		}
	}
}
