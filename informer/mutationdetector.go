package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// mutationCheckInterval is the time between two checks of all values.
const mutationCheckInterval = time.Second

// A mutationDetector holds a checksum of each stored value, taken before any reader saw the
// value. All methods do nothing on a nil detector.
type mutationDetector[T any] struct {
	seed maphash.Seed

	mu sync.Mutex
	// Guarded by mu.
	sums map[*Item[T]]uint64
}

func newMutationDetector[T any]() *mutationDetector[T] {
	return &mutationDetector[T]{seed: maphash.MakeSeed(), sums: make(map[*Item[T]]uint64)}
}

// run checks all values periodically until ctx ends.
func (m *mutationDetector[T]) run(ctx context.Context) {
	ticker := time.NewTicker(mutationCheckInterval)
	defer ticker.Stop()
	for {
		m.check()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// track records item and forgets old, the item that was replaced. Either may be nil.
func (m *mutationDetector[T]) track(old, item *Item[T]) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sums, old)
	if item == nil {
		return
	}
	if sum, ok := m.checksum(item); ok {
		m.sums[item] = sum
	}
}

// check panics if a value was modified.
func (m *mutationDetector[T]) check() {
	if m == nil {
		return
	}
	if item := m.mutated(); item != nil {
		panic(fmt.Sprintf("informer: the stored value of %s was modified; values are shared, so modify a copy. "+
			"Current value: %+v", item.Key, item.Value))
	}
}

// mutated returns an item whose value was modified, or nil.
func (m *mutationDetector[T]) mutated() *Item[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	for item, was := range m.sums {
		if sum, ok := m.checksum(item); ok && sum != was {
			return item
		}
	}
	return nil
}

// checksum hashes the JSON form of the value. ok is false if the value cannot be encoded.
func (m *mutationDetector[T]) checksum(item *Item[T]) (sum uint64, ok bool) {
	data, err := json.Marshal(item.Value)
	return maphash.Bytes(m.seed, data), err == nil
}
