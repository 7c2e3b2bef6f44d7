package reflector

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// A Sink receives the state and the changes of a Source. All methods are called from the
// goroutine of the Reflector.
type Sink interface {
	// Begin announces initial events. why is the reason if they will be the whole state. It has
	// no meaning if they will be a difference. If the initial events since the last Begin were
	// not followed by Synced, the Sink discards them.
	Begin(why string)
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

// A Reflector passes the events of a Source to a Sink. Run may be called only once, and the
// fields must not be changed while it runs.
type Reflector struct {
	// Source and Sink must be set.
	Source listwatch.Source
	Sink   Sink
	// Query has the selection, and its Conflate applies to the watches. Its Start, Version and
	// Since determine the first state that is requested. Its other fields are ignored.
	Query listwatch.Query
	// Resume is the position at which the first watch continues. If zero, the watch begins
	// with the state.
	Resume ResumePoint
	// Release lets a [Releaser] reuse the memory of events after Sink.Take has accepted
	// them. It must be false if the Sink keeps any part of their objects.
	Release bool
	// Differences makes the Reflector request, after the history has expired, the difference to
	// the state that the Sink has. The Sink must then apply the initial events in one step, when
	// it receives Synced: as a difference if the [listwatch.Event.Since] of that event reports
	// one, and otherwise as the whole state.
	Differences bool
	// PageSize is the number of objects in a page when the state is listed. If zero,
	// [DefaultPageSize] is used. A negative value requests all objects at once.
	PageSize int
	// Backoff configures the delay between watches. If zero, Policy.Backoff is used.
	Backoff listwatch.Backoff
	// Policy is the Policy of the Source; see [Direct].
	Policy Policy
	// Lost is called before each delay, and so is Policy.Lost. err is the reason why the watch
	// ended or could not be opened, or io.EOF after a clean end. relist is true if the state will
	// be requested again. Lost may be nil.
	Lost func(err error, wait time.Duration, relist bool)
	// Opened is called when a watch has been opened. It may be nil.
	Opened func()
	// Restart is set if the events have a reader who must handle some failures. It is called
	// before the state is requested again. The ResumePoint is the position up to which the Sink
	// has received events. The new state replaces these events. If Restart returns an error, Run
	// returns that error. If Restart is set, the initial events are not checked: a change among
	// them is passed to the Sink, and a clean end before Synced is not a failure. If Restart is
	// nil, Run ends only with its context.
	Restart func(cause error, at *ResumePoint) error

	current  current
	failures failures
}

// failures describes the failures since the last progress.
type failures struct {
	backoff backoff
	// repeats is the number of failures with the action RetryOnce since the last progress.
	repeats int
	// laggingSince is the time when the source first reported that it lags. It is zero if the
	// source does not lag.
	laggingSince time.Time
	// truncated is the number of consecutive watches whose initial events had no end.
	truncated int
	// doubtful is the number of consecutive watches that resumed and leave doubt about the version.
	doubtful int
}

// current describes the current watch, and the state of the Sink.
type current struct {
	// watcher is the watch that Open has opened and Run has not read yet. It is nil if there is
	// no such watch.
	watcher listwatch.Watcher
	since   listwatch.Version // the version of the Query.Since of the watch
	why     string            // the reason for Begin
}

// The reasons for which a follower receives a whole state, as public traces report them.
const (
	WholeFirst       = "first"       // it had no state
	WholeDeclined    = "declined"    // the source did not send the difference
	WholeUnsupported = "unsupported" // the source or the follower does not support differences
	WholeDoubted     = "doubted"     // its state was wrong, or newer than the state of the source
)

// DefaultPageSize is the page size of client-go.
const DefaultPageSize = 500

// batchSize is the number of events that are read at once.
const batchSize = 64

// Run follows the Source until ctx ends, and then returns the error of ctx. If Restart is set and
// the reader must handle a failure, Run returns the error of the watch or of Restart.
func (r *Reflector) Run(ctx context.Context) error {
	defer func() {
		if r.current.watcher != nil { // ctx ended before the watch of Open was read
			_ = r.current.watcher.Close()
		}
	}()
	for ctx.Err() == nil {
		end := r.watch(ctx)
		if ctx.Err() != nil {
			break
		}
		end.Err = r.doubt(end)
		action := r.decide(end)
		if action == Stop {
			return end.Err
		}
		if err := r.prepare(action, end); err != nil {
			return err
		}
		wait := r.failures.backoff.delay(cmp.Or(r.Backoff, r.Policy.Backoff), end)
		r.lost(end.Err, wait)
		Sleep(ctx, wait)
	}
	return ctx.Err()
}

// doubt returns the error of end, or Expired if the last watches leave doubt that the source still
// has the history after the version at which they resumed.
func (r *Reflector) doubt(end WatchEnd) error {
	switch {
	case !end.Opened || end.Rejected:
		return end.Err
	case !end.leavesDoubt() || !r.Resume.Synced:
		r.failures.doubtful = 0
		return end.Err
	}
	if r.failures.doubtful++; r.failures.doubtful < maxDoubtful {
		return end.Err
	}
	r.failures.doubtful = 0
	return &listwatch.Error{
		Code: listwatch.Expired, Op: "watch",
		Message: fmt.Sprintf("%d watches from version %d ended without an event, so the source may lack its history; "+
			"the last: %v", maxDoubtful, r.Resume.Version, end.Err),
	}
}

// decide returns the action after end.
func (r *Reflector) decide(end WatchEnd) Action {
	if r.Resume.Advanced && r.Resume.Synced {
		r.failures.repeats, r.failures.laggingSince = 0, time.Time{}
	}
	r.Resume.Advanced = false
	action := Stop
	if r.Policy.Decide != nil && !end.Rejected {
		action = r.Policy.Decide(end, &r.Resume)
	}
	if action == RetryOnce {
		if r.failures.repeats++; r.failures.repeats > 1 {
			action = Stop
		}
	}
	if action == Stop && r.Restart == nil {
		action = defaultAction(end, &r.Resume)
	}
	if action == Retry && end.HasLived() {
		r.failures.repeats = 0
	}
	return action
}

// prepare makes the next watch begin as action requires after end.
func (r *Reflector) prepare(action Action, end WatchEnd) error {
	if action == AwaitVersion {
		if r.failures.laggingSince.IsZero() {
			r.failures.laggingSince = time.Now()
		} else if time.Since(r.failures.laggingSince) > LagTolerance {
			action = RelistNewest
		}
	}
	if action != Relist && action != RelistNewest && r.Resume.Synced {
		return nil
	}
	if r.Restart != nil {
		if err := r.Restart(end.Err, &r.Resume); err != nil {
			return err
		}
	}
	isExpiry := !end.Rejected && listwatch.CodeOf(end.Err) == listwatch.Expired
	switch {
	case action == RelistNewest:
		r.requestState(0, WholeDoubted)
	case action == Relist && r.Resume.Synced && isExpiry:
		since := listwatch.State{Version: r.Resume.Version, ID: r.Resume.ID}
		if r.requestState(r.Resume.Newest(), WholeUnsupported); r.Differences && since.ID != "" {
			r.Query.Since, r.current.why = since, WholeDeclined
		}
	case action == Relist && r.Resume.Synced:
		r.requestState(r.Resume.Newest(), WholeDoubted)
	case r.Query.Since.Version != 0 && (end.Rejected || listwatch.CodeOf(end.Err) == listwatch.Corrupt):
		// The difference itself may be the reason.
		r.Query.Since, r.current.why = listwatch.State{}, WholeDoubted
	}
	r.failures.laggingSince = time.Time{}
	return nil
}

// requestState makes the next watch begin with a whole state that is not older than v, for the
// reason why. If v is zero, the watch begins with the newest state.
func (r *Reflector) requestState(v listwatch.Version, why string) {
	r.current.why = why
	r.Resume = ResumePoint{}
	r.Query.Start, r.Query.Version, r.Query.Since = listwatch.StartAt, v, listwatch.State{}
	if v == 0 {
		r.Query.Start = listwatch.StartNewest
	}
}

// lost calls the hooks before the delay.
func (r *Reflector) lost(err error, wait time.Duration) {
	if r.Policy.Lost != nil {
		r.Policy.Lost(err, wait)
	}
	if r.Lost != nil {
		r.Lost(err, wait, !r.Resume.Synced)
	}
}

// watch opens a watch unless Open has done so, and reads it to its end.
func (r *Reflector) watch(ctx context.Context) WatchEnd {
	if r.current.watcher == nil {
		if err := r.Open(ctx); err != nil {
			return WatchEnd{Err: err}
		}
	}
	w := r.current.watcher
	r.current.watcher = nil
	defer func() { _ = w.Close() }() // the error of Close does not concern the events
	limit := r.limitInitialEvents(ctx)
	opened := time.Now()
	if r.Opened != nil {
		r.Opened()
	}
	end := r.read(limit.ctx, w, limit)
	end.Opened, end.Lived = true, time.Since(opened)
	if !r.Resume.Synced && end.refusesState() {
		r.watchList().MarkUnsupported()
	}
	if limit.stop(); !r.Resume.Synced && r.Restart == nil {
		end.Err = r.truncated(end.Err, limit)
	}
	return end
}

// read passes the events of w to the sink until w ends or an event is rejected.
func (r *Reflector) read(ctx context.Context, w listwatch.Watcher, limit *initialLimit) (end WatchEnd) {
	events := make([]listwatch.Event, batchSize)
	var release func([]listwatch.Event)
	if w, ok := w.(Releaser); ok && r.Release {
		release = w.Release
	}
	for {
		n, err := w.Next(ctx, events)
		end.Received += n
		if end.Rejected, end.Err = r.take(events[:n], release); end.Err != nil {
			return end
		}
		clear(events[:n])
		if err != nil {
			end.Err = err
			return end
		}
		limit.progress(r.Resume.Synced)
	}
}

// take passes new events to the sink, and then to release if it is not nil. It stops at the
// first event that is out of order. rejected is true if err is an error of the sink.
func (r *Reflector) take(events []listwatch.Event, release func([]listwatch.Event)) (rejected bool, err error) {
	admitted := events[:0]
	for _, e := range events {
		var pass bool
		if pass, err = r.admit(&e); err != nil {
			break
		}
		if pass {
			admitted = append(admitted, e)
		}
	}
	if len(admitted) == 0 {
		return false, err
	}
	if err := r.Sink.Take(admitted); err != nil {
		return true, err
	}
	if release != nil {
		release(admitted)
	}
	return false, err
}

// admit records e and reports whether the sink receives it.
func (r *Reflector) admit(e *listwatch.Event) (pass bool, err error) {
	if !r.Resume.Synced {
		if err := r.checkInitial(e); err != nil {
			return false, err
		}
	}
	if err := listwatch.CheckVersion(r.Source, e.Version); err != nil {
		return false, err
	}
	pass, err = r.Resume.Admit(e)
	if pass && e.Type == listwatch.Synced {
		r.failures.truncated, r.Resume.ID = 0, ""
	}
	if state := e.State(); state.ID != "" {
		r.Resume.ID = state.ID
	}
	return pass, err
}
