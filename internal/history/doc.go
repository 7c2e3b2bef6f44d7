// Package history is the heart of a store: one append-only log of immutable events, the current state beside it, and watchers that are
// no more than cursors into it.
//
// # Who is who
//
// A [Log] holds one collection. Each write appends a record, which holds the object before and after it. A feed is the part of the
// log that one selection is concerned with, with the selection's transitions worked out once: an object that enters the selection is
// ADDED, one that leaves it is DELETED. All watchers of one selection share a feed. A [Cursor] is one watcher: a pointer to the
// last node of the feed that it has read. It has no channel, no buffer and no goroutine, so a watcher that lags costs nobody
// anything, and one that sleeps costs its few words.
//
//	Append ─→ records ─ index ─→ feed ─→ node ─→ node ─→ node ─→ nil
//	   │                                   ↑        ↑
//	   └────→ tree (state now)           cursor   cursor
//
// # Invariants
//
//   - Versions never decrease along the records, and everything after floor is there: a watch from v >= floor misses nothing.
//   - The tree is the state after the last record. A snapshot is a copy-on-write copy of it and never changes.
//   - A feed's head is a node that has left the window, or the feed's first, empty node; the nodes behind it are exactly the records
//     in the window, after the feed's begin, that concern the selection.
//   - A cursor has returned everything up to its node and nothing behind it. It is in the window if and only if its node is the head
//     of the feed or behind it: the link of a node is cut when the head moves on from it, and a cut link reads as expired.
//   - A record's nodes become visible in all feeds before the [Head] reaches its version: who has read the Head and then finds no
//     next node has seen everything up to there. Changes of one version become visible at once, and a batch of a cursor splits them only
//     where they are more than a whole batch.
//   - Lock order: Log.mu, then feed.mu. Readers take neither while they read a feed. Wake functions run under no lock.
package history
