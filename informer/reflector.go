package informer

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/govalue"
	"github.com/listwatch/listwatch/internal/hooks"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/persist"
)

// A Sink receives the state and the changes from a [Reflector]. A [DeltaFIFO] is a Sink.
// All calls come from one goroutine. If a method returns an error, the Reflector relists,
// because the Sink has missed a change and no longer equals the source.
type Sink[T any] interface {
	// Replace receives the whole state, in key order, and the version of that state. The Sink may
	// keep the slice.
	Replace(items []*Item[T], version listwatch.Version) error
	// Apply receives a batch of changes in order. Their types are DeltaAdded, DeltaUpdated
	// and DeltaDeleted. The Sink must not keep the slice.
	Apply(changes ...Delta[T]) error
	// Bookmark reports that everything up to the given version has been passed to the Sink.
	Bookmark(version listwatch.Version) error
}

// A Patcher is a [Sink] that can apply the difference to the state that it has. Other Sinks always
// receive whole states after the history of the source has expired.
type Patcher[T any] interface {
	Sink[T]
	// Patch receives the difference to the state that the Sink has: the objects that were created
	// or changed, the keys of the objects that are gone, and the version of the new state. The
	// objects and the keys are in no particular order. The Sink may already have some of the items.
	// It may keep the slices.
	Patch(items []*Item[T], gone []listwatch.Key, version listwatch.Version) error
}

// A Reflector keeps a Sink up to date with a Source: it streams the initial state, follows
// the changes, and recovers from every interruption.
//
// If the Source cannot stream its state, the Reflector lists it in pages instead, and tries to
// stream again after an hour. After a watch ends, the Reflector resumes at the last version. If the
// Source no longer has the history after that version ([listwatch.Expired]), or if an object could
// not be decoded or stored, the Reflector relists. It requests a state that is at least as new as
// the last state or, if the Source has no such state, the newest state. It discards a state that it
// received only in part. These are the rules of client-go's Reflector, except that this Reflector
// never skips an object, and that a [Patcher] receives only the difference if the history has
// expired and the Source knows the difference.
//
// The fields must not be changed while Run is active.
type Reflector[T any] struct {
	// Source is followed, and Sink receives the state and the changes. Both are required.
	Source listwatch.Source
	Sink   Sink[T]
	// Selection is the part of the collection to follow. Conflate lets the watches skip states; see
	// [listwatch.Query.Conflate].
	Selection listwatch.Selection
	Conflate  time.Duration
	// Decode converts an object to a value. If nil, the result is the same as the result of
	// [listwatch.Decode], but decoding is faster. If T is *listwatch.Object, the value is the
	// object itself. Otherwise a collection with a [listwatch.Description.Encoding] needs a Decode
	// function. A Decode function may keep the object or parts of it, so the source does not
	// reuse the object's memory if Decode is set.
	Decode func(*listwatch.Object) (T, error)
	// Transform changes a value before it is stored, for example to drop fields that the
	// program does not use. It is called once for each object received. If nil, values are
	// stored as decoded.
	Transform func(T) (T, error)
	// PageSize is the number of objects in a page of a list. If zero, 500 is used. A
	// negative value requests all objects in one page.
	PageSize int
	// Backoff configures the delay between attempts. If zero, the Backoff of Source is used if
	// that is a [client.Remote], and otherwise client-go's: 0.8 s, doubled up to 30 s.
	//
	// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
	Backoff listwatch.Backoff
	// Trace is notified of connection losses and relists. It may be nil.
	Trace *Trace

	persist *persister[T] // nil if there is no saved copy
	// adopted is called with the epoch of each new state. It is nil unless an Informer follows.
	adopted func(epoch string)
	// watching is called when a watch has been opened, and when it has ended. It is nil unless an
	// Informer follows.
	watching func(isOpen bool)
}

// Run feeds the Sink until ctx ends and returns ctx.Err(). If Decode is missing, the error has code
// Unsupported.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if err := checkDecode(r.Source, r.Decode); err != nil {
		return err
	}
	sink := &reflectorSink[T]{Reflector: r, decode: r.Decode, trace: hooks.Fill(r.Trace)}
	if sink.decode == nil {
		sink.decode, sink.releases = govalue.Decoder[T]()
	}
	sink.patcher, _ = r.Sink.(Patcher[T])
	source, policy := reflector.Direct(r.Source)
	q := listwatch.Query{Selection: r.Selection, Conflate: r.Conflate}
	if r.persist != nil {
		q.Since = r.persist.since
	}
	watching := r.watching
	if watching == nil {
		watching = func(bool) {}
	}
	f := &reflector.Reflector{
		Source: source, Policy: policy, Sink: sink, Query: q,
		Release: sink.releases, Differences: sink.patcher != nil,
		PageSize: r.PageSize, Backoff: r.Backoff,
		Opened: func() { watching(true) },
		Lost: func(err error, wait time.Duration, relist bool) {
			watching(false)
			r.persist.lost(err)
			sink.trace.Lost(err, wait, relist)
		},
	}
	return f.Run(ctx)
}

// checkDecode returns an error if decode is nil and the objects of source cannot be decoded.
func checkDecode[T any](source listwatch.Source, decode func(*listwatch.Object) (T, error)) error {
	if _, keepsObjects := any((*T)(nil)).(**listwatch.Object); keepsObjects || decode != nil {
		return nil
	}
	return listwatch.Describe(source).RequireJSON("an informer without Decode")
}

// A reflectorSink decodes the events that internal/reflector receives and passes them to
// the Sink.
type reflectorSink[T any] struct {
	*Reflector[T]
	decode func(*listwatch.Object) (T, error)
	// releases is true if the decoded values do not use the memory of the objects, so that the
	// source can reuse this memory.
	releases bool
	patcher  Patcher[T] // the Sink, or nil if it is not a Patcher
	trace    *Trace     // without nil hooks
	initial  initialEvents[T]
	// changes holds the changes since the last flush.
	changes []Delta[T]
}

// initialEvents holds a state, or a difference to a state, that is not complete yet.
type initialEvents[T any] struct {
	items   []*Item[T]
	gone    []listwatch.Key
	why     string // the reason if it is a whole state
	started time.Time
}

func (r *reflectorSink[T]) Begin(why string) {
	r.initial = initialEvents[T]{why: why, started: time.Now()}
}

func (r *reflectorSink[T]) Take(events []listwatch.Event) error {
	for _, e := range events {
		if err := r.takeOne(e); err != nil {
			_ = r.flush() // an error does not matter: the caller relists anyway
			return err
		}
	}
	return r.flush()
}

// flush passes the collected changes to the Sink.
func (r *reflectorSink[T]) flush() error {
	if len(r.changes) == 0 {
		return nil
	}
	err := r.Sink.Apply(r.changes...)
	clear(r.changes)
	r.changes = r.changes[:0]
	return err
}

func (r *reflectorSink[T]) takeOne(e listwatch.Event) error {
	switch e.Type {
	case listwatch.Bookmark:
		if err := r.flush(); err != nil {
			return err
		}
		return r.Sink.Bookmark(e.Version)
	case listwatch.Synced:
		return r.synced(e)
	}
	if e.Initial && e.Type == listwatch.Deleted {
		r.initial.gone = append(r.initial.gone, e.Object.Key)
		return nil
	}
	item, err := r.item(e.Object)
	if err != nil {
		return err
	}
	if e.Initial {
		r.initial.items = append(r.initial.items, item)
		return nil
	}
	change := Delta[T]{Type: DeltaUpdated, Item: item}
	switch e.Type {
	case listwatch.Added:
		change.Type = DeltaAdded
	case listwatch.Deleted:
		change.Type = DeltaDeleted
	}
	r.changes = append(r.changes, change)
	return nil
}

// synced passes the initial events to the Sink. e is the event that completes them.
func (r *reflectorSink[T]) synced(e listwatch.Event) error {
	i := r.initial
	r.initial = initialEvents[T]{}
	change := StateChange{Objects: len(i.items), Gone: len(i.gone), Version: e.Version, Reason: i.why}
	r.persist.begin()
	since, isDifference := e.Since()
	if isDifference {
		change.Since, change.Reason = since, ""
		if state, ok := r.persist.merge(i.items, i.gone); ok {
			i.items, isDifference = state, false
		}
	}
	var err error
	if isDifference {
		err = r.patcher.Patch(i.items, i.gone, e.Version)
	} else {
		err = r.Sink.Replace(i.items, e.Version)
	}
	if err == nil {
		r.persist.complete(e.State().ID)
		if r.adopted != nil {
			r.adopted(reflector.EpochOf(e))
		}
		change.Took = time.Since(i.started)
		r.trace.Received(change)
	}
	return err
}

// item decodes and transforms o. An error names the object; a panic of Decode or Transform
// becomes an error.
func (r *reflectorSink[T]) item(o *listwatch.Object) (item *Item[T], err error) {
	at := "decode"
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			err = &listwatch.Error{
				Code: listwatch.Corrupt, Op: at + " " + o.Key.String() + " at version " + o.Version.String(), Err: err,
			}
			r.trace.DecodeFailed(o, err)
		}
	}()
	value, err := r.decode(o)
	if err != nil {
		return nil, err
	}
	if r.Transform != nil {
		at = "transform"
		if value, err = r.Transform(value); err != nil {
			return nil, err
		}
	}
	item = newItem(o, value)
	if r.releases {
		item.detach(o)
	}
	return item, nil
}

// A StateChange describes a whole state, or a difference between two states.
type StateChange struct {
	// Objects is the number of objects in the state, or of the created and changed objects in the
	// difference. Gone is the number of keys that a difference deletes.
	Objects, Gone int
	// Since and Version are the versions of the states before and after a difference. Since is
	// zero for a whole state.
	Since, Version listwatch.Version
	// Took is the time from the first object to the last.
	Took time.Duration
	// Reason is the reason for a whole state: "first"; "declined" if the source could not send
	// the difference; "unsupported" if the source or the Sink does not support differences;
	// "doubted" if an object could not be decoded or stored, an event was malformed, or the
	// source has an older state. It is empty for a difference.
	Reason string
}

// A Trace has hooks that report lost streams, received states and decoding failures of a Reflector.
// Each hook may be nil. The hooks are called synchronously and must return quickly.
type Trace struct {
	// Lost is called when a stream has ended or could not be opened, with the delay before
	// the next attempt. err is io.EOF if the Source ended the stream cleanly. relist
	// reports whether the next attempt starts with the whole state, or with the difference to it.
	Lost func(err error, wait time.Duration, relist bool)
	// Received is called when the Sink has received a whole state, or the difference to the state
	// that it had.
	Received func(StateChange)
	// Saved is called when the copy of [Informer.Persist] was saved or removed, or could not be.
	Saved func(persist.Saved)
	// DecodeFailed is called when an object could not be decoded or transformed. The
	// Reflector relists until it can decode and transform the object.
	DecodeFailed func(o *listwatch.Object, err error)
}
