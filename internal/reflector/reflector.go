package reflector

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

// A Sink receives the state and the changes of a Source. All methods are called from the
// goroutine of the Reflector.
type Sink interface {
	// Begin announces a new state. If the initial events since the last Begin were not
	// followed by Synced, the Sink discards them.
	Begin()
	// Take receives events in order: the objects of the state as initial events in key
	// order, then Synced, then changes and bookmarks. The slice is valid until Take
	// returns. If Take returns an error, the Reflector requests the state again, so no
	// event is ever skipped.
	Take(events []listwatch.Event) error
}

// A Releaser is a Watcher that can reuse the memory of its objects, because no other reader
// has them.
type Releaser interface {
	listwatch.Watcher
	// Release gives events from Next back to the Watcher. Their objects, including bytes and
	// labels, must not be used afterwards. Copies, such as decoded values, remain valid. An
	// event must not be released twice. Releasing is optional.
	Release(events []listwatch.Event)
}

// A Reflector passes the events of a Source to a Sink. Fields must not be changed while it
// runs, and it runs once.
type Reflector struct {
	// Source and Sink must be set.
	Source listwatch.Source
	Sink   Sink
	// Query selects objects by its Namespace, Name, Labels and Fields. Its other fields are
	// ignored.
	Query listwatch.Query
	// Start and StartVersion select the first state that is requested, like the fields of
	// [listwatch.Query]. The zero values request the newest state.
	Start        listwatch.Start
	StartVersion listwatch.Version
	// Resume is the position at which the first watch continues. If zero, the watch begins
	// with the state.
	Resume ResumePoint
	// Release lets a [Releaser] reuse the memory of events after Sink.Take has accepted
	// them. It must be false if the Sink keeps any part of their objects.
	Release bool
	// PageSize is the number of objects in a page when the state is listed. If zero,
	// [DefaultPageSize] is used. A negative value requests all objects at once.
	PageSize int
	// BatchSize is the number of events read at once. If zero, 64 is used.
	BatchSize int
	// Backoff configures the delay between watches.
	Backoff listwatch.Backoff
	// Policy decides how Run continues after a failure. With the zero Policy, Run ends only
	// with its context.
	Policy Policy
	// WatchList remembers whether the Source can stream its state. Several Reflectors of
	// one Source may share it. If nil, this Reflector uses its own.
	WatchList *WatchListSupport
	// Lost is called before each delay. err is the reason why the watch ended or could not
	// be opened, or io.EOF after a clean end. relist is true if the state will be requested
	// again. Lost may be nil.
	Lost func(err error, wait time.Duration, relist bool)

	// watcher is the watch that Open has opened and Run has not read yet. It is nil if there is no
	// such watch.
	watcher listwatch.Watcher
	backoff backoff

	// repeats is the number of failures with the action RetryOnce since the last progress.
	repeats int
	// laggingSince is the time when the source first reported that it lags. It is zero if the
	// source does not lag.
	laggingSince time.Time
	// truncated is the number of consecutive watches that ended cleanly within the initial events.
	truncated int
}

// DefaultPageSize is the page size of client-go.
const DefaultPageSize = 500

const defaultBatchSize = 64

// Run follows the Source until ctx ends, and then returns the error of ctx. If the Policy
// stops it, Run returns the error of the watch or of Restart.
func (r *Reflector) Run(ctx context.Context) error {
	defer func() {
		if r.watcher != nil { // ctx ended before the watch of Open was read
			_ = r.watcher.Close()
		}
	}()
	for ctx.Err() == nil {
		end := r.watch(ctx)
		if ctx.Err() != nil {
			break
		}
		if err := r.handle(end); err != nil {
			return err
		}
		wait := r.backoff.delay(r.Backoff, end)
		if r.Lost != nil {
			r.Lost(end.Err, wait, !r.Resume.Synced)
		}
		Sleep(ctx, wait)
	}
	return ctx.Err()
}

// watch opens a watch unless Open has done so, and reads it to its end.
func (r *Reflector) watch(ctx context.Context) WatchEnd {
	if r.watcher == nil {
		if err := r.Open(ctx); err != nil {
			return WatchEnd{Err: err}
		}
	}
	w := r.watcher
	r.watcher = nil
	defer func() { _ = w.Close() }() // the error of Close does not concern the events
	opened := time.Now()
	end := r.read(ctx, w)
	end.Opened, end.Lived = true, time.Since(opened)
	if end.Err == io.EOF && !r.Resume.Synced && !r.Policy.UncheckedInitialEvents {
		// An incomplete state is useless and may have been expensive to send, so this
		// counts as a failure.
		end.Err = &listwatch.Error{Code: listwatch.Unavailable, Op: "read the initial events", Err: io.ErrUnexpectedEOF}
		if r.truncated++; r.truncated >= maxTruncated {
			r.watchList().MarkUnsupported()
		}
	}
	return end
}

// read passes the events of w to the sink until w ends or an event is rejected.
func (r *Reflector) read(ctx context.Context, w listwatch.Watcher) (end WatchEnd) {
	events := make([]listwatch.Event, cmp.Or(r.BatchSize, defaultBatchSize))
	var release func([]listwatch.Event)
	if w, ok := w.(Releaser); ok && r.Release {
		release = w.Release
	}
	for {
		n, err := w.Next(ctx, events)
		end.Received += n
		if rejected := r.take(events[:n], release); rejected != nil {
			end.Rejected, end.Err = true, rejected
			return end
		}
		clear(events[:n])
		if err != nil {
			end.Err = err
			return end
		}
	}
}

// take passes new events to the sink, and then to release if it is not nil. It stops at the
// first event that is out of order.
func (r *Reflector) take(events []listwatch.Event, release func([]listwatch.Event)) error {
	admitted, rejected := events[:0], error(nil)
	for _, e := range events {
		pass, err := r.admit(&e)
		if err != nil {
			rejected = err
			break
		}
		if pass {
			admitted = append(admitted, e)
		}
	}
	if len(admitted) == 0 {
		return rejected
	}
	if err := r.Sink.Take(admitted); err != nil {
		return err
	}
	if release != nil {
		release(admitted)
	}
	return rejected
}

// admit records e and reports whether the sink receives it.
func (r *Reflector) admit(e *listwatch.Event) (pass bool, err error) {
	isChange := e.Type == listwatch.Modified || e.Type == listwatch.Deleted
	if isChange && !r.Resume.Synced && !r.Policy.UncheckedInitialEvents {
		return false, &listwatch.Error{
			Code: listwatch.Corrupt, Op: "read the initial events",
			Message: e.Type.String() + " " + e.Object.Key.String() + " was received before the end of the initial events",
		}
	}
	if err := listwatch.CheckVersion(r.Source, e.Version); err != nil {
		return false, err
	}
	pass, err = r.Resume.Admit(e)
	if pass && e.Type == listwatch.Synced {
		r.truncated = 0
	}
	return pass, err
}
