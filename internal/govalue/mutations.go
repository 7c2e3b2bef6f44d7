package govalue

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"sync"
	"time"
)

// mutationCheckInterval is the time between two checks of all values.
const mutationCheckInterval = time.Second

// A MutationDetector holds a checksum of the value of each item that readers share, taken before
// any reader saw the value. All methods do nothing on a nil detector.
type MutationDetector[I comparable] struct {
	valueOf func(item I) any
	mutated func(item I)
	seed    maphash.Seed

	mu sync.Mutex
	// Guarded by mu.
	sums map[I]uint64
}

// NewMutationDetector returns a MutationDetector for items whose values valueOf returns. It calls
// mutated with an item whose value was modified.
func NewMutationDetector[I comparable](valueOf func(item I) any, mutated func(item I)) *MutationDetector[I] {
	return &MutationDetector[I]{
		valueOf: valueOf, mutated: mutated, seed: maphash.MakeSeed(), sums: make(map[I]uint64),
	}
}

// Run checks all values periodically until ctx ends.
func (m *MutationDetector[I]) Run(ctx context.Context) {
	ticker := time.NewTicker(mutationCheckInterval)
	defer ticker.Stop()
	for {
		m.Check()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Track records item and forgets old, the item that was replaced. Either may be the zero I.
func (m *MutationDetector[I]) Track(old, item I) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sums, old)
	if item == *new(I) {
		return
	}
	if sum, ok := m.checksum(item); ok {
		m.sums[item] = sum
	}
}

// Check calls mutated for each item whose value has changed since it was added.
func (m *MutationDetector[I]) Check() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for item, was := range m.sums {
		if sum, ok := m.checksum(item); ok && sum != was {
			m.mutated(item)
		}
	}
}

// checksum hashes the JSON form of the value. ok is false if the value cannot be encoded.
func (m *MutationDetector[I]) checksum(item I) (sum uint64, ok bool) {
	data, err := json.Marshal(m.valueOf(item))
	return maphash.Bytes(m.seed, data), err == nil
}
