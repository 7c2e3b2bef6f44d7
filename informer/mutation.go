package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"
)

// mutationPeriod is how often stored values are compared with what they were.
const mutationPeriod = time.Second

// detectMutations compares the stored values from time to time, and once more at the end, with what they were when they were seen first.
func (i *Informer[T]) detectMutations(ctx context.Context) {
	seen := &originals[T]{seed: maphash.MakeSeed(), sums: make(map[*Item[T]]uint64)}
	ticker := time.NewTicker(mutationPeriod)
	defer ticker.Stop()
	for {
		if item := seen.check(i.store.Snapshot()); item != nil {
			panic(fmt.Sprintf("informer: the stored value of %s was modified: values are shared, change a copy. It is now: %+v", item.Key, item.Value))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// originals knows stored values as they were.
type originals[T any] struct {
	seed maphash.Seed
	sums map[*Item[T]]uint64
}

// check returns an item that is not what it was; nil: there is none. It forgets what is no longer stored.
func (o *originals[T]) check(s *Snapshot[T]) (changed *Item[T]) {
	sums := make(map[*Item[T]]uint64, s.Len())
	for item := range s.Items() {
		sum, ok := o.sum(item)
		if was, known := o.sums[item]; ok && known && was != sum {
			return item
		}
		sums[item] = sum
	}
	o.sums = sums
	return nil
}

// sum is of the value's JSON; false: it has none.
func (o *originals[T]) sum(item *Item[T]) (uint64, bool) {
	data, err := json.Marshal(item.Value)
	return maphash.Bytes(o.seed, data), err == nil
}
