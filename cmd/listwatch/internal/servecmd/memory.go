package servecmd

import (
	"context"
	"time"

	"github.com/listwatch/listwatch/store"
)

// withQuota returns the spec of a collection with the quotas that the flags set.
func (o *storeOptions) withQuota(s store.CollectionSpec) store.CollectionSpec {
	s.MaxObjects, s.MaxBytes = o.quotaObjects, int64(o.quotaBytes)
	return s
}

// memoryInterval is the time between two checks of the memory for stored data.
const memoryInterval = time.Second

// limitHistory drops the history when objects and history fill the memory for stored data.
// Otherwise the server would refuse all writes until the history is older than --history-age.
// Watches that have pending events expire. limitHistory returns when ctx ends.
func (s *server) limitHistory(ctx context.Context) {
	every(ctx, memoryInterval, func() {
		used, limit := s.api.Server.Usage()
		objects := used.StoredBytes - used.HistoryBytes
		// If the objects alone nearly fill the memory, the history is too small to be worth the
		// relists that dropping it would cause.
		if limit.StoredBytes == 0 || used.StoredBytes < limit.StoredBytes || objects > limit.StoredBytes/8*7 {
			return
		}
		s.Log.Warn("objects and history fill the memory for them: dropping the history", "objects", objects, "history",
			used.HistoryBytes, "limit", limit.StoredBytes)
		s.db.Compact()
	})
}
