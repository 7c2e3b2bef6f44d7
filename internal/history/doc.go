// Package history keeps the recent past of one collection: an append-only log of immutable
// records, the current state, and watchers that are cursors into the log. Every store is
// built on it.
//
// # Overview
//
// A [Log] holds one collection. Each write appends a record, which holds the object before
// and after the write. A feed is the part of the log that concerns one selection. It records
// what each write means to the selection: an object that enters the selection is ADDED, one
// that leaves it is DELETED. All watchers of the same selection share a feed. A [Cursor] is
// one watcher: a pointer to the last node of the feed that it has read. It has no channel, no
// buffer and no goroutine, so a watcher that lags or waits takes a few words of memory and
// does not slow down writers.
//
//	Append ─→ records ─→ feed index ─→ feed: node ─→ node ─→ node ─→ nil
//	   │                                       ↑        ↑
//	   └────→ tree (current state)           cursor   cursor
//
// # Phases of a cursor
//
// A query decides in which phase a cursor starts. Each phase leads to the next by itself, and
// in every phase the cursor can fail or be closed.
//
//	           awaitingStart            if the start version has not been reached
//	                 │
//	      ┌──────────┼───────────┐
//	      ↓          ↓           │
//	readingSnapshot  readingLog  │      readingSnapshot if the query wants initial events,
//	      ↓          │           │      readingLog if it starts before the feed does
//	snapshotRead     │           │
//	      ↓          ↓           ↓
//	      └──→ readingFeed ←─────┘
//
// # Invariants
//
//   - Versions never decrease along the records, and every record after the floor is kept: a
//     watch that starts at the floor or later misses nothing.
//   - The tree is the state after the last record. A snapshot is a copy-on-write copy of it
//     and never changes.
//   - The floor of a chain is its newest node that retention has dropped, or the empty node
//     that the chain started with. The nodes after it are exactly the retained records that
//     concern the selection and are newer than the feed.
//   - A cursor has returned every event up to its node and none after it. Retention has
//     overtaken the cursor if its node was dropped and is no longer the floor: the link of a
//     node is cut when the floor moves past it, and the cursor expires when it follows a cut
//     link.
//   - The nodes of a record become visible in all feeds before the [Revision] reaches its
//     version: a reader that loads the Revision and then finds no next node has seen every
//     event up to it.
//   - Records of one version become visible at once. A batch of a cursor splits them only if
//     they are more than fit into a whole batch.
//   - Readers take no lock while they read a feed. The lock order is in the comment of
//     wakeList.
package history
