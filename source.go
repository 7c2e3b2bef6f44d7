package listwatch

import (
	"context"
	"errors"
	"io"
	"iter"
)

// A Source is a versioned collection that can be listed and then followed. A store is a Source, [client.Remote] makes one of a
// URL, and a relay is one that follows another: they all keep the same promises.
//
// # Promises
//
// A watch is ordered (versions never decrease, and grow strictly for each key), unique (nothing comes twice), complete (every
// write after the start that concerns the selection is there) and resumable (a watch from version v continues with the first
// write after v). Where a Source can't keep them, because the history that would be needed is gone, it says [Expired] and never skips.
//
// Both methods are safe for concurrent use.
//
// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
type Source interface {
	// List returns the state of the selection at one version. It waits for a version that is not there yet, for a bounded
	// time, then fails with [NotYet].
	List(ctx context.Context, q Query) (Page, error)
	// Watch follows the selection. Parameters that can't be served fail here ([Invalid]); what depends on the history
	// ([Expired], [NotYet]) may fail here or at the first read of the Watcher. ctx bounds the call, not the Watcher.
	Watch(ctx context.Context, q Query) (Watcher, error)
}

// A Watcher is an ordered stream of events with one reader, who pulls. Close may be called from any goroutine; every other
// method belongs to the reader.
type Watcher interface {
	// Next waits until there is an event and then takes as many as are there without waiting, at most len(dst), which
	// must not be zero. It returns either n > 0 or an error: [io.EOF] where the stream came to a clean end, ctx.Err()
	// where ctx ended first (the Watcher can still be read), an [*Error] where it failed.
	Next(ctx context.Context, dst []Event) (n int, err error)
	// Close releases the Watcher. It never blocks; a Next that waits returns [io.EOF]. Calling it again does nothing.
	Close() error
}

// A Poller is a Watcher over a local log, which can be read without waiting and without a goroutine of its own.
type Poller interface {
	Watcher
	// Poll is Next that doesn't wait: it returns 0 and no error where nothing is there.
	Poll(dst []Event) (n int, err error)
	// Wake arms one call of f: as soon as Poll may have something to return, f is called once, on any goroutine, outside all
	// locks; at once if that is now. f must be quick and must not block. A second Wake replaces the first.
	Wake(f func())
	// Position returns the version up to which everything that concerns this watcher has been returned. Zero: it is
	// still in its initial events.
	Position() Version
}

// A Describer is a Source that can say what it holds.
type Describer interface {
	Describe() Description
}

// A Description says what a collection holds.
type Description struct {
	// APIVersion and Kind are those of the objects, as in Kubernetes: "apps/v1" and "Deployment".
	APIVersion, Kind string
	// Fields are the paths that a field selector may name beside metadata.name and metadata.namespace.
	Fields []string
	// Epoch changes when versions begin anew, so that those of another epoch mean nothing. Empty: versions never begin anew.
	Epoch string
}

// Describe returns what s says of itself, or kind "Object" of apiVersion "v1" where it says nothing.
func Describe(s Source) Description {
	var d Description
	if s, ok := s.(Describer); ok {
		d = s.Describe()
	}
	if d.Kind == "" {
		d.Kind = "Object"
	}
	if d.APIVersion == "" {
		d.APIVersion = "v1"
	}
	return d
}

// A Query says what to list or to watch. The zero Query is everything, as it is now.
type Query struct {
	// Namespace is the one wanted; empty means all of them.
	Namespace string
	// Name is the one object wanted; empty means all.
	Name string
	// Labels and Fields select by labels and by fields. Their zero values select everything.
	Labels LabelSelector
	Fields FieldSelector

	// Start is where to begin; Version belongs to [At].
	Start   Start
	Version Version
	// Match is for lists with Start [At]: how Version is meant. For watches it stands for the rule that sendInitialEvents
	// demands and changes nothing.
	Match Match

	// InitialEvents says whether a watch begins with the state as Added events, in key order. Unset: with [Newest] and
	// [Any] it does, with [At] it does not.
	InitialEvents Choice
	// Bookmarks asks for [Synced] after the initial events, and allows [Bookmark] events at any time.
	Bookmarks bool

	// Limit is how many objects a page of a list may hold; zero or negative: all.
	Limit int
	// Continue is the token of the page before; then Start, Version and Match must be zero.
	Continue string
}

// SendsInitialEvents resolves InitialEvents.
func (q Query) SendsInitialEvents() bool {
	return q.InitialEvents == Yes || q.InitialEvents == Unset && q.Start != At
}

// A Start says where in history a list or a watch begins.
type Start uint8

const (
	// Newest: a state that is not older than any write acknowledged before the call (resourceVersion "").
	Newest Start = iota
	// Any: whatever state is at hand (resourceVersion "0").
	Any
	// At: Query.Version. A watch begins with the first write after it; a list and a watch with initial events show a state
	// that is not older, or that very state, as Query.Match says.
	At
)

// A Match says how the version of a list is meant (resourceVersionMatch).
type Match uint8

const (
	// NotOlderThan: the version or any later one. This is the default.
	NotOlderThan Match = iota
	// Exact: that very version.
	Exact
)

// A Choice is a yes, a no, or neither.
type Choice uint8

// The values of a [Choice].
const (
	Unset Choice = iota
	Yes
	No
)

// A Page is the answer to a list: the objects in key order, at one version.
type Page struct {
	// Items are shared and must not be modified.
	Items []*Object
	// Version is the one the page shows. A watch At it continues the list exactly.
	Version Version
	// Continue is the token of the next page; empty: this was the last. With selectors that page may have no items: the list goes
	// on where its scope does.
	Continue string
	// Remaining is how many objects come after this page; negative: unknown, as with selectors.
	Remaining int
}

// All returns the events of w one by one, for code that needs no batches. It ends without an error at a clean end of the stream
// and with one otherwise; breaking off does not close w.
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
				yield(Event{}, err)
				return
			}
		}
	}
}
