package informer

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A Sink takes what a [Reflector] sees; [DeltaFIFO] is one. One goroutine calls it. An error makes the Reflector ask for the whole state
// again: what a Sink could not store must not be passed over.
type Sink[T any] interface {
	// Replace is the whole state, in key order, at version. The Sink may keep items.
	Replace(items []*Item[T], version listwatch.Version) error
	// Apply is changes in order, which came together: Added, Updated or Deleted. The Sink must not keep the slice.
	Apply(changes ...Delta[T]) error
	// Bookmark says that everything up to version has been given.
	Bookmark(version listwatch.Version) error
}

// A Reflector keeps a Sink up to date with a Source: it streams the state and then follows the changes, for ever, through every interruption.
//
// A Source that can't stream its state is listed in pages instead, and not asked to stream again for an hour. After an end it goes on where it was; where the
// history is gone ([listwatch.Expired]), or something came that could not be decoded or stored, it asks for the state again: not older
// than what it has seen, and where the Source can't give that, the newest. A state that breaks off is dropped. These are the rules of
// client-go's Reflector, but that nothing is ever skipped.
//
// Fields must not be changed while it runs.
type Reflector[T any] struct {
	// Source is followed, Sink is fed.
	Source listwatch.Source
	Sink   Sink[T]
	// Query selects, by its Namespace, Name, Labels and Fields; the rest is ignored.
	Query listwatch.Query
	// Decode makes a value of an object. nil: what [listwatch.Decode] does, by a faster decoder, or, for a T that is *listwatch.Object, the
	// object itself. A Decode that isn't nil may keep the object, which costs memory for each: see [reflector.Releaser].
	Decode func(*listwatch.Object) (T, error)
	// Transform changes a value before it is stored, for instance to drop what nobody needs; nil: as it came. It is called once for each
	// object that comes.
	Transform func(T) (T, error)
	// PageSize is how many objects a page of a list has. Zero: 500; negative: all of them.
	PageSize int
	// Backoff is how long to wait before another stream. The zero value is that of client-go: 0.8 s, doubled to 30 s.
	Backoff listwatch.Backoff
	// Trace is told what happens; nil: nobody.
	Trace *Trace
}

// Run feeds the Sink until ctx ends, and returns ctx.Err().
func (r *Reflector[T]) Run(ctx context.Context) error {
	sink := &reflectorSink[T]{Reflector: r, decode: r.Decode}
	if sink.decode == nil {
		sink.decode, sink.releases = defaultDecoder[T]()
	}
	f := &reflector.Reflector{
		Source: r.Source, Sink: sink, Query: r.Query, PageSize: r.PageSize, Backoff: r.Backoff, Lost: r.Trace.lost,
		Release: sink.releases,
	}
	return f.Run(ctx)
}

// A reflection is what a Reflector is in the middle of.
type reflectorSink[T any] struct {
	*Reflector[T]
	decode   func(*listwatch.Object) (T, error)
	releases bool       // values have nothing of their objects; what decodes for somebody else may keep them
	initial  []*Item[T] // of the initial events that have come
	changes  []Delta[T] // that have come since the last flush
	started  time.Time
}

// Begin implements reflector.Sink.
func (r *reflectorSink[T]) Begin() { r.initial, r.started = nil, time.Now() }

// Take implements reflector.Sink.
func (r *reflectorSink[T]) Take(events []listwatch.Event) error {
	for _, e := range events {
		if err := r.takeOne(e); err != nil {
			_ = r.flush() // the state is asked for again anyway
			return err
		}
	}
	return r.flush()
}

// flush applies the changes that have come.
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
		state := r.initial
		r.initial = nil
		if err := r.Sink.Replace(state, e.Version); err != nil {
			return err
		}
		r.Trace.replaced(len(state), e.Version, time.Since(r.started))
		return nil
	}
	item, err := r.item(e.Object)
	if err != nil {
		return err
	}
	if e.Initial {
		r.initial = append(r.initial, item)
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

// item decodes o. What is wrong with it, and a panic of a function that is not ours, is an error that names it.
func (r *reflectorSink[T]) item(o *listwatch.Object) (item *Item[T], err error) {
	at := "decode"
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			err = &listwatch.Error{Code: listwatch.Corrupt, Op: at + " " + o.Key.String() + " at version " + o.Version.String(), Err: err}
			r.Trace.refused(o, err)
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

// A Trace is told what a Reflector does that its Sink doesn't see. Each hook may be nil; it is called from the goroutine at work and must be
// quick.
type Trace struct {
	// Lost says why a stream ended, or could not be opened, and that another will be tried after wait. err is io.EOF where the Source ended
	// it cleanly. relist: the next one begins with the whole state.
	Lost func(err error, wait time.Duration, relist bool)
	// Replaced says that the whole state was taken over: how many objects, at which version, how long after the first of them.
	Replaced func(objects int, version listwatch.Version, took time.Duration)
	// Refused says that an object could not be decoded or transformed. The state is asked for again until it can.
	DecodeFailed func(o *listwatch.Object, err error)
}

func (t *Trace) lost(err error, wait time.Duration, relist bool) {
	if t != nil && t.Lost != nil {
		t.Lost(err, wait, relist)
	}
}

func (t *Trace) replaced(objects int, version listwatch.Version, took time.Duration) {
	if t != nil && t.Replaced != nil {
		t.Replaced(objects, version, took)
	}
}

func (t *Trace) refused(o *listwatch.Object, err error) {
	if t != nil && t.DecodeFailed != nil {
		t.DecodeFailed(o, err)
	}
}
