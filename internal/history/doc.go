// Package history keeps the recent history of one collection: an append-only log of
// immutable records, the current state, and watchers that are cursors into the log. All
// stores of this module, and package watchcache, are built on it.
//
// # Overview
//
// A [Log] holds one collection. Each write appends a record, which holds the object before
// and after the write. A feed holds the part of the log that concerns one selection, with
// the effect of each write on the selection: an object that enters the selection is ADDED,
// and one that leaves it is DELETED. A change that the projection of the selection hides is not
// part of the feed. All watchers of the same selection share a feed. A
// [Cursor] is one watcher: a pointer to the last node of the feed that it has read. It has
// no channel, no buffer and no goroutine, so a watcher that lags or waits takes a few words
// of memory and does not slow down writers.
//
// An index finds the feeds that a write concerns. The index cannot distinguish some feeds from many
// others, such as the feed of the selector app!=web. The matcher serves these feeds: a goroutine
// that compares records with selections after the write. Feeds keep few nodes if there are many
// feeds. A watcher that lags behind the nodes of its feed reads the records of the log.
//
//	Append ─→ records ─→ feed index ─→ feed: node ─→ node ─→ node ─→ nil
//	   │                                       ↑        ↑
//	   └────→ tree (current state)           cursor   cursor
//
// # Stages of a cursor
//
// A cursor is a sequence of stages. The query determines the first one. A cursor can fail or be
// closed in every stage.
//
//	           startWait           if the start version has not been reached
//	               │
//	    ┌──────────┼───────────┐
//	    ↓          ↓           │
//	snapshot    backlog        │   snapshot if the query wants initial events,
//	    ↓          │           │   backlog if it starts before the feed does
//	departed       │           │   only if the initial events are a difference
//	    ↓          │           │
//	 synced        │           │   only if the query wants bookmarks
//	    ↓          ↓           ↓
//	    └───────→ live ←───────┘   and back to backlog if it lags behind the feed
//
// Two types combine cursors. merged is the last stage of a cursor of a [Union]: it reads one cursor
// of each part. paced reads a cursor, also one of a union, in the passes of conflation.
//
// # Invariants
//
//   - Versions never decrease along the records, and every record after the floor is
//     retained. So a watch that starts at the floor or later receives every event.
//   - The tree is the state after the last record. A snapshot is a copy-on-write copy of the tree
//     and never changes.
//   - The floor of a chain is the newest node that was dropped, or the empty node that the chain
//     started with. The nodes after it are exactly the records after the floor that concern the
//     selection and were offered to the feed. All of them are retained, or become unreadable when
//     retention drops their records.
//   - A cursor has returned every event up to its node and none after it, except for those that a
//     conflating cursor has skipped. When the floor moves past a node, the link of that node is
//     cut. A cursor that follows a cut link continues with the records, and expires if retention
//     has dropped one that it has not read.
//   - The nodes of a record become visible in all indexed feeds before the [revision.Revision]
//     reaches its version, and a reader of another feed first calls catchUp. So a reader that loads
//     the Revision and then finds no next node has seen every event up to that version.
//   - Records of one version become visible together. A cursor returns them in one batch,
//     unless a batch is too small for all of them.
//   - After a write that may remove an object from a selection, the departures have the key of
//     the object and its attributes before the write, until the horizon moves past the version
//     of the write. They outlive the record. A Reset adds the departures that it finds.
//   - Readers take no lock while they read a feed. The lock order is in the comment of
//     wakeList.
//
// # Source files
//
//   - record.go, state.go: writes, and the state after them.
//   - selection.go, feed.go, feedindex.go, matcher.go, wakelist.go: the watchers' side of a write.
//   - log.go: a log, and its writes. caches.go: the frames of initial events.
//   - cursor.go: the cursor. startwait.go, initial.go, difference.go, backlog.go, live.go and
//     merged.go: its stages. conflation.go: reading without the states that are out of date.
//   - retention.go: how long history is kept. restore.go: logs of stores that restart.
//   - union.go: several logs with one Revision as one Source.
//   - list.go, continuetoken.go, watch.go: reading.
//   - projection.go: the reduced objects of a feed with a projection.
package history
