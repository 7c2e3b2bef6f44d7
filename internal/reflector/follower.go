package reflector

import (
	"context"
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

// A Sink makes something of a collection. One goroutine calls it.
type Sink interface {
	// Begin says that a state comes, from its first object on: what came of an earlier one that was not Synced is void.
	Begin()
	// Take is given events in order: the objects of the state as Initial ones in key order, then Synced, then changes and bookmarks.
	// events is valid until Take returns. An error makes the Follower begin again: an event that was not understood is never passed over.
	Take(events []listwatch.Event) error
}

// A Releaser is a Watcher that can reuse the memory of its objects, because no one but its reader has them.
type Releaser interface {
	listwatch.Watcher
	// Release gives events that Next has returned back to the Watcher: their objects, with the bytes and labels of these, must not be
	// used afterwards. What was copied out of them, as decoders do, stays valid. An event may be released once at most; none need be.
	Release(events []listwatch.Event)
}

// A Follower feeds a Sink with what happens at a Source. Fields must not be changed while it runs.
type Reflector struct {
	// Source is followed, Sink is fed.
	Source listwatch.Source
	Sink   Sink
	// Query selects: its Namespace, Name, Labels and Fields. The rest is ignored.
	Query listwatch.Query
	// Release says that the Sink keeps nothing of the objects when Take has returned: then a [Releaser] may have them back.
	Release bool
	// PageSize is how many objects a page of a list has, where the Source can't stream its state. Zero: [DefaultPageSize]; negative: all.
	PageSize int
	// Backoff is how long to wait before another stream.
	Backoff listwatch.Backoff
	// Lost is told why a stream ended, or could not be opened, and after what time another is tried; nil: nobody. err is io.EOF for a clean
	// end. again says that the state is asked for anew.
	Lost func(err error, wait time.Duration, again bool)
}

// DefaultPageSize is how many objects a page of a list has, as in client-go.
const DefaultPageSize = 500

// A run is one Run.
type run struct {
	*Reflector
	progress Progress
	waits    Waits

	following bool              // the state is there: progress says where to resume
	demand    listwatch.Version // the state wanted is not older than this; zero: the newest
	behind    time.Time         // since when the source does not know the version; zero: it does
	plain     time.Time         // until when the source is not asked to stream its state
	broken    int               // how many streams in a row ended the state cleanly before its end
}

// Run follows until ctx ends, and returns its error.
func (f *Reflector) Run(ctx context.Context) error {
	r := &run{Reflector: f}
	for ctx.Err() == nil {
		end := r.stream(ctx)
		if ctx.Err() != nil {
			break
		}
		r.judge(end.Err)
		wait := r.waits.After(f.Backoff, end)
		if f.Lost != nil {
			f.Lost(end.Err, wait, !r.following)
		}
		Sleep(ctx, wait)
	}
	return ctx.Err()
}

// stream opens a watch and reads it to its end.
func (r *run) stream(ctx context.Context) (end End) {
	w, err := r.open(ctx)
	if err != nil {
		return End{Err: err}
	}
	defer func() { _ = w.Close() }()
	opened := time.Now()
	n, err := r.read(ctx, w)
	if err == io.EOF && r.progress.Initial {
		// Nothing is won by a state that was not whole, and it may have cost much: it is no clean end.
		err = &listwatch.Error{Code: listwatch.Unavailable, Op: "read the initial events", Err: io.ErrUnexpectedEOF}
		if r.broken++; r.broken >= mostBroken {
			r.plain = time.Now().Add(plainFor)
		}
	}
	return End{Opened: true, Lived: time.Since(opened), Received: n, Err: err}
}

// batch is how many events are taken at once.
const batch = 64

// read gives the sink what comes of w, and returns how many events came and how w ended.
func (r *run) read(ctx context.Context, w listwatch.Watcher) (received int, err error) {
	var events [batch]listwatch.Event
	var release func([]listwatch.Event)
	if w, ok := w.(Releaser); ok && r.Release {
		release = w.Release
	}
	for {
		n, err := w.Next(ctx, events[:])
		received += n
		if n > 0 {
			if err := r.take(events[:n], release); err != nil {
				return received, err
			}
			clear(events[:n])
		}
		if err != nil {
			return received, err
		}
	}
}

// take passes on what is new, and releases it where release isn't nil. Where something is wrong with it, or the sink refuses it, the state is asked for again.
func (r *run) take(events []listwatch.Event, release func([]listwatch.Event)) error {
	admitted, wrong := events[:0], error(nil)
	for _, e := range events {
		pass, err := r.admit(&e)
		if err != nil {
			wrong = err
			break
		}
		if pass {
			admitted = append(admitted, e)
		}
	}
	if len(admitted) > 0 {
		if err := r.Sink.Take(admitted); err != nil {
			wrong = err
		} else if release != nil {
			release(admitted)
		}
	}
	switch {
	case wrong == nil:
	case r.progress.Initial:
		r.restart(r.demand)
	default:
		r.restart(r.progress.Newest())
	}
	return wrong
}

// admit takes e into account, and reports whether the sink is to see it.
func (r *run) admit(e *listwatch.Event) (pass bool, err error) {
	if r.progress.Initial && (e.Type == listwatch.Modified || e.Type == listwatch.Deleted) {
		return false, &listwatch.Error{
			Code: listwatch.Corrupt, Op: "read the initial events", Message: e.Type.String() + " " + e.Object.Key.String() + " came before their end",
		}
	}
	pass, err = r.progress.Admit(e)
	if e.Type == listwatch.Synced && pass {
		r.following, r.broken = true, 0
	}
	return pass, err
}

// restart makes the next stream begin with the state, not older than v; zero: the newest.
func (r *run) restart(v listwatch.Version) {
	r.following, r.demand, r.behind = false, v, time.Time{}
}

// Sleep waits for d; false: ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
