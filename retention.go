package listwatch

import "time"

// A Retention limits the history that a store, a cache or a relay keeps in memory for each
// collection, so that watches can start at an earlier version. The zero Retention is a sound
// default.
type Retention struct {
	// Age is the time for which a write is kept after this process received it. Only a new write
	// drops old ones, so an idle collection keeps its history. If zero, 5 minutes is used. A
	// negative value means no limit.
	Age time.Duration
	// Bytes limits the memory of the history, not counting the current objects. The newest write is
	// always kept. If zero, 256 MiB is used. A negative value means no limit.
	Bytes int64
	// FrameCacheBytes limits the part of Bytes that caches encoded events. Encoded initial events
	// may use as much again, in addition to Bytes. If zero, a quarter of Bytes is used. A negative
	// value means no limit.
	FrameCacheBytes int64
	// SinceBytes limits the memory of the departures, in addition to Bytes. Departures record which
	// objects left which selections. They let a client that was away for longer than Age receive a
	// difference instead of the whole state; see [Query.Since]. A departure takes about 100 bytes;
	// each delete, and each update that changes a label or a selectable field, adds one. If zero,
	// 16 MiB is used. A negative value means no limit.
	SinceBytes int64
}
