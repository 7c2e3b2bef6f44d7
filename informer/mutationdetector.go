package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// mutationPeriod is how often stored values are compared with what they were.
const mutationCheckInterval = time.Second

// originals knows stored values as they were before anybody saw them. A nil one knows nothing.
type mutationDetector[T any] struct {
	seed maphash.Seed

	mu sync.Mutex
	// Guarded by mu.
	sums map[*Item[T]]uint64
}

func newMutationDetector[T any]() *mutationDetector[T] {
	return &mutationDetector[T]{seed: maphash.MakeSeed(), sums: make(map[*Item[T]]uint64)}
}

// run compares from time to time, until ctx ends.
func (o *mutationDetector[T]) run(ctx context.Context) {
	ticker := time.NewTicker(mutationCheckInterval)
	defer ticker.Stop()
	for {
		o.check()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// store takes down item, and forgets old, in whose place it comes. Either may be nil.
func (o *mutationDetector[T]) track(old, item *Item[T]) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sums, old)
	if item == nil {
		return
	}
	if sum, ok := o.checksum(item); ok {
		o.sums[item] = sum
	}
}

// check panics where a value is not what it was.
func (o *mutationDetector[T]) check() {
	if o == nil {
		return
	}
	if item := o.mutated(); item != nil {
		panic(fmt.Sprintf("informer: the stored value of %s was modified: values are shared, change a copy. It is now: %+v", item.Key, item.Value))
	}
}

// changed returns an item that is not what it was; nil: there is none.
func (o *mutationDetector[T]) mutated() *Item[T] {
	o.mu.Lock()
	defer o.mu.Unlock()
	for item, was := range o.sums {
		if sum, ok := o.checksum(item); ok && sum != was {
			return item
		}
	}
	return nil
}

// sum is of the value's JSON; false: it has none.
func (o *mutationDetector[T]) checksum(item *Item[T]) (uint64, bool) {
	data, err := json.Marshal(item.Value)
	return maphash.Bytes(o.seed, data), err == nil
}
