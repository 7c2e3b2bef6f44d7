package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// A Source is a versioned collection that can be listed and then followed. Stores,
// [client.Remote] and relays are Sources, with the same guarantees.
//
// # Guarantees
//
// A watch is
//   - ordered: versions never decrease, and increase strictly for each key;
//   - unique: no event is delivered twice;
//   - complete: every write after the start that concerns the selection is delivered;
//   - resumable: a watch from version v continues with the first write after v.
//
// A Source that no longer has the necessary history returns [Expired]. It never skips events.
//
// # Versions
//
// Versions start at 1, even in a collection in which nothing has happened yet, because zero means
// that no version is given. A Source that returns version zero is refused; see [CheckVersion].
//
// # Wrappers
//
// A Source that wraps another one has a method Unwrap() Source, with which [Describe] and [As] find
// the Description and other properties of the wrapped Source.
//
// List and Watch are safe for concurrent use.
//
// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
type Source interface {
	// List returns the objects of the selection at one version. If the requested version is in the
	// future, List waits for a limited time and then fails with [NotYet].
	List(ctx context.Context, q Query) (Page, error)
	// Watch follows the selection. Invalid parameters fail here. Errors that depend on the
	// history ([Expired], [NotYet]) may be returned here or by the first read of the Watcher. ctx
	// applies to the call, not to the Watcher.
	Watch(ctx context.Context, q Query) (Watcher, error)
}

// A Watcher reads the events of a watch in order. It has one reader at a time; only Close may be
// called from any goroutine.
type Watcher interface {
	// Next waits for at least one event and stores the available events in dst, at most
	// len(dst), which must not be zero. It returns either n > 0 or an error: [io.EOF] at a
	// clean end, ctx.Err() if ctx ended first (then the Watcher can still be read), or an
	// [*Error].
	Next(ctx context.Context, dst []Event) (n int, err error)
	// Close releases the Watcher. It never blocks. A Next that waits returns [io.EOF]. Calling
	// Close again has no effect.
	Close() error
}

// A Poller is a Watcher that can be read without blocking, so that it needs no goroutine. The
// watchers of local stores are Pollers.
type Poller interface {
	Watcher
	// Poll is like Next but does not wait: if no event is available, it returns 0 and no error.
	Poll(dst []Event) (n int, err error)
	// Wake requests one call of f when Poll may have something to return. f is called once, from
	// any goroutine and without locks held, possibly before Wake returns. It must return quickly
	// and must not block. Another call of Wake replaces f.
	Wake(f func())
	// Progress returns the position of the reader.
	Progress() Progress
}

// Progress describes the position of the reader of a [Poller]. Only Version must be set.
type Progress struct {
	// State is the state that the reader has. Its Version is the version up to which all events of
	// this watcher have been returned; it is zero during the initial events. Its ID is empty if the
	// Source sends no differences.
	State
	// More is true if Poll may return more events although its last call did not fill dst. This is
	// so while the watcher returns initial events, old history, or a group of conflated events.
	More bool
	// Conflates is true if the watcher skips states of objects that are out of date; see
	// [Query.Conflate].
	Conflates bool
	// Waiting is the error with which the watcher fails if its start version is not reached in
	// time. It is nil if the watcher has reached that version.
	Waiting error
}

// As returns s if it is a T. If it is not, but has a method Unwrap() Source, As continues with the
// Source that Unwrap returns. Use As for properties that a wrapper does not change, and not to
// bypass a wrapper that checks permissions.
func As[T any](s Source) (found T, ok bool) {
	for ; s != nil; s = unwrap(s) {
		if found, ok = s.(T); ok {
			return found, true
		}
	}
	return found, false
}

// unwrap returns the Source that s wraps, or nil.
func unwrap(s Source) Source {
	if w, ok := s.(interface{ Unwrap() Source }); ok {
		return w.Unwrap()
	}
	return nil
}

// Stats are the sizes of a collection at one moment. Collections of all stores, caches and relays
// return them from a method Stats.
type Stats struct {
	// Objects is the number of objects in the current state, and Watchers the number of open
	// watches.
	Objects, Watchers int
	// Expiring is the number of these objects that have a TTL, and Expired the number of objects
	// that this process has deleted at the end of their TTL. Expired is zero over etcd, which
	// deletes them itself. Both are zero if the source is not a store.
	Expiring int
	Expired  uint64
	// Oldest is the oldest version that a watch can start from, and Newest the version of the
	// current state. Both are zero if a source has no state yet.
	Oldest, Newest Version
	// Horizon is the oldest version since which the source can send a difference; see
	// [Query.Since]. If the source has missed writes, some later versions are unknown, too.
	Horizon Version
	// ObjectBytes is the length of the JSON of the current objects. ObjectMemory estimates the
	// memory of these objects; zero means unknown.
	ObjectBytes, ObjectMemory int64
	// HistoryBytes estimates the memory of the history, without the current objects. It includes
	// the cached frames of the history and of the initial events, and the departures that
	// [Retention.SinceBytes] limits.
	HistoryBytes int64
	// Records is the number of writes in the history.
	Records int
	// Window is the period that the history covers, and its limits.
	Window struct {
		// OldestAt is the time of the oldest write, or zero if the history is empty.
		OldestAt time.Time
		// Age and Bytes are the limits of [Retention], with their defaults. Zero means unknown.
		Age   time.Duration
		Bytes int64
		// DroppedEarly is the number of writes that the history has dropped before Age, because
		// they exceeded Bytes.
		DroppedEarly uint64
	}
	// Frames are the cached frames, which are encoded events.
	Frames struct {
		// Bytes is the total length of the cached frames.
		Bytes int64
		// Built is the number of frames that were ever put into the cache. It grows much slower
		// than the number of events sent if watchers share frames.
		Built uint64
	}
	// Wakeups is the number of times that a waiting watch was woken by a write.
	Wakeups uint64
}

// CheckVersion returns an error of code [Corrupt] if v is zero. v is the version of an event or of
// a page that s has returned. Code that serves or follows a Source calls CheckVersion, because no
// client can resume from version zero. The error names the type of s, or of the innermost Source
// that s wraps.
func CheckVersion(s Source, v Version) error {
	if v != 0 {
		return nil
	}
	for inner := unwrap(s); inner != nil; inner = unwrap(s) {
		s = inner
	}
	return &Error{
		Code: Corrupt,
		Message: fmt.Sprintf(
			"the Source %T has version 0: versions start at 1, also in an empty collection (see docs/own-source.md)",
			s),
	}
}

// A Query holds the parameters of a list or a watch. The zero Query requests all objects at the
// newest version.
type Query struct {
	Selection

	// Start is the point in the history at which to start. Version is used only if Start is
	// [StartAt].
	Start   Start
	Version Version
	// Match is the rule by which a list with [StartAt] uses Version. It has no effect on a watch.
	Match Match

	// InitialEvents controls whether a watch starts with the current state, as Added events in
	// key order.
	InitialEvents InitialEvents
	// Bookmarks requests [Synced] after the initial events, and allows [Bookmark] at any time.
	Bookmarks bool
	// Since is the state of the selection that the reader of a watch has, or zero. If it is set,
	// the Source may send the difference to that state as the initial events: an Added event for
	// each object written since, and then a Deleted event for each key that left the selection. The
	// [Event.Since] of the Synced event reports whether the initial events are a difference. With
	// [StartAt], Version must not be older than any write that the reader has. A reader that does
	// not know this version sets another Start. It then receives a difference only if the Source
	// has missed no write since that state.
	//
	// A Source may ignore Since. It must do so in a watch without Bookmarks or without initial
	// events. A Source that shows each user a part of another Source clears Since.
	Since State
	// Conflate lets a watch skip states of objects that are already out of date when they are sent.
	// A Modified event may be missing if a later event of the same object follows. All other events
	// are sent, and the reader can resume after any event.
	//
	// Conflate is the minimum interval between groups of events from a server, at most a minute.
	// After a longer silence, the server sends an event at once. A local Source does not wait: it
	// skips the states that are out of date when its reader reads. If zero, every event is sent. A
	// negative value is an interval of zero, so that only a reader that lags misses states. A
	// Source may ignore Conflate.
	//
	// Do not use it to copy a Source with its versions, as a relay does: between two bookmarks, the
	// reader may lack newer states of some objects.
	Conflate time.Duration

	// Limit is the maximum number of objects in a page of a list. Zero or a negative value means no
	// limit.
	Limit int
	// Continue is the continue token of the previous page. If it is set, Start, Version and Match
	// must be zero.
	Continue string
}

// SendsInitialEvents reports whether a watch with q starts with the initial events.
func (q Query) SendsInitialEvents() bool {
	return q.InitialEvents == InitialEventsYes || q.InitialEvents == InitialEventsUnset && q.Start != StartAt
}

// A State identifies the state of a selection at one version.
type State struct {
	// Version is the version of the state.
	Version Version
	// ID identifies the epoch and the selection, in a form that only the Source knows.
	ID string
}

// A Start is the point in the history at which a list or a watch starts.
type Start uint8

const (
	// StartNewest means a state that includes every write acknowledged before the call
	// (resourceVersion "").
	StartNewest Start = iota
	// StartAny means any available state, possibly an old one (resourceVersion "0").
	StartAny
	// StartAt means Query.Version. A watch starts with the first write after it. A list, and a
	// watch with initial events, shows the state at that version or later; a list with
	// [MatchExact] shows it at that version.
	StartAt
)

// A Match is the rule by which a list uses Query.Version (resourceVersionMatch).
type Match uint8

const (
	// MatchNotOlderThan allows Query.Version and any later version. It is the default.
	MatchNotOlderThan Match = iota
	// MatchExact allows only Query.Version.
	MatchExact
)

// InitialEvents controls whether a watch starts with the current state (sendInitialEvents).
type InitialEvents uint8

const (
	// InitialEventsUnset starts the watch with the state unless Query.Start is [StartAt].
	InitialEventsUnset InitialEvents = iota
	// InitialEventsYes starts the watch with the state.
	InitialEventsYes
	// InitialEventsNo starts the watch without the state.
	InitialEventsNo
)

// A Page is one page of a list: objects in key order, at one version.
type Page struct {
	// Items are shared and must not be modified.
	Items []*Object
	// Version is the version of the state. A watch that starts at this version continues the list
	// without a gap.
	Version Version
	// Continue is the token for the next page. It is empty if this is the last page. With a
	// selector the next page may be empty.
	Continue string
	// Remaining is the number of objects after this page. It is negative if unknown, as with
	// selectors.
	Remaining int
}

// All returns an iterator over the events of w, one by one. After a clean end of w, the iteration
// stops without an error. If w fails, the error is the last element. When ctx has ended, the
// iterator closes w: nothing else would, because a Watcher outlives the contexts of its calls.
// Leaving the loop does not close w.
func All(ctx context.Context, w Watcher) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var batch [16]Event
		for {
			n, err := w.Next(ctx, batch[:])
			for _, e := range batch[:n] {
				if !yield(e, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				if ctx.Err() != nil {
					_ = w.Close() // the caller receives the error of ctx
				}
				yield(Event{}, err)
				return
			}
		}
	}
}
