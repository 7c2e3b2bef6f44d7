package servecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
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
// Watches that have pending events expire. If that is not enough, it logs that writes are refused.
// limitHistory returns when ctx ends.
func (s *server) limitHistory(ctx context.Context) {
	var dropped droppedHistory
	states := failureLog{
		log: s.Log, message: "the memory for objects and history is full, and writes are refused",
		success: "the memory for objects and history has room again",
	}
	every(ctx, memoryInterval, func() {
		used, limit := s.api.Server.Usage()
		states.report(checkMemory(used, limit))
		if !dropped.isWorthwhile(used, limit) {
			return
		}
		s.Log.Warn("objects and history fill the memory for them: dropping the history", "objects",
			used.StoredBytes-used.HistoryBytes, "history", used.HistoryBytes, "limit", limit.StoredBytes)
		s.db.Compact()
		used, _ = s.api.Server.Usage()
		dropped.left = used.HistoryBytes
	})
}

// A droppedHistory remembers how much history was left after it was dropped: the memory of
// selections of open watches, and of departures for clients that resume by difference.
type droppedHistory struct{ left int64 }

// isWorthwhile reports whether stored data fills its part of the memory, and dropping the history
// would release at least an eighth of that. A smaller gain does not justify the relists that it
// causes.
func (d *droppedHistory) isWorthwhile(used, limit watchserver.Usage) bool {
	d.left = min(d.left, used.HistoryBytes)
	return limit.StoredBytes > 0 && used.StoredBytes >= limit.StoredBytes &&
		used.HistoryBytes-d.left >= limit.StoredBytes/8
}

// checkMemory returns an error if stored data has filled its part of the memory.
func checkMemory(used, limit watchserver.Usage) error {
	if limit.StoredBytes == 0 || used.StoredBytes < limit.StoredBytes {
		return nil
	}
	return fmt.Errorf("%d MiB are full: delete objects, or raise --memory", limit.StoredBytes>>20)
}
