package reflector

import (
	"time"

	"github.com/listwatch/listwatch"
)

// LagTolerance is the time for which a source may lag behind a version that it has reported
// before. The source may be another replica that is catching up.
const LagTolerance = time.Minute

// An Action is the next step of a Reflector after a watch ended or could not be opened.
type Action uint8

// The actions. Unless stated otherwise, the next watch resumes. If the initial events were
// not complete, it requests the state again instead.
const (
	// Retry opens the next watch.
	Retry Action = iota
	// RetryOnce opens the next watch. If the Policy chooses RetryOnce a second time, Run returns
	// the error of the watch instead. Progress starts the count again: a complete state, a later
	// event or bookmark, or a watch that lived for a second and ended with Retry.
	RetryOnce
	// AwaitVersion opens the next watch. After the source has lagged for [LagTolerance], the action
	// is the same as RelistNewest.
	AwaitVersion
	// Relist requests a state that is at least as new as the newest event.
	Relist
	// RelistNewest requests the newest state of the source, even if its version is below the
	// version of the newest event received, as when versions have started over.
	RelistNewest
	// Stop ends Run with the error of the watch.
	Stop
)

// A Policy decides how a Reflector continues after a failure. The zero Policy never ends Run:
// it relists if the history has expired, or if an event was malformed or rejected by the Sink.
type Policy struct {
	// Decide returns the next action after the end of a watch, which the WatchEnd describes. The
	// ResumePoint is the position at which the next watch would resume.
	Decide func(end WatchEnd, at *ResumePoint) Action
	// Restart is called before the state is requested again. The ResumePoint is the position up to
	// which the Sink has received events. The new state replaces these events. If Restart returns
	// an error, Run returns that error. Restart may be nil.
	Restart func(cause error, at *ResumePoint) error
	// MayRefuseWatchList reports whether err, which a watch with initial events returned, may mean
	// that the Source does not support them. If MayRefuseWatchList is nil, every
	// [listwatch.Unsupported] and [listwatch.Invalid] may mean that.
	MayRefuseWatchList func(err error) bool
	// UncheckedInitialEvents disables the checks of initial events. If false, a change
	// among the initial events, and a clean end before Synced, are failures.
	UncheckedInitialEvents bool
}

func (p *Policy) decide(end WatchEnd, at *ResumePoint) Action {
	if p.Decide != nil {
		return p.Decide(end, at)
	}
	return defaultAction(end, at)
}

func defaultAction(end WatchEnd, at *ResumePoint) Action {
	code := listwatch.CodeOf(end.Err)
	switch {
	case (end.Rejected || !at.Synced) && (code == listwatch.Expired || code == listwatch.NotYet):
		// The source cannot serve a state that is as new as the newest event. Its newest
		// state contains every acknowledged write, so that state is older than the newest
		// event only if versions have started over.
		return RelistNewest
	case end.Rejected:
		return Relist
	case !at.Synced:
		return Retry
	case code == listwatch.Expired || code == listwatch.Corrupt || mayRefuseWatchList(end.Err):
		// Resuming would fail again: the source would send the same malformed event, which
		// must not be skipped, or find the same version invalid.
		return Relist
	case code == listwatch.NotYet:
		return AwaitVersion
	}
	return Retry
}

func (p *Policy) mayRefuseWatchList(err error) bool {
	if p.MayRefuseWatchList != nil {
		return p.MayRefuseWatchList(err)
	}
	return mayRefuseWatchList(err)
}

func mayRefuseWatchList(err error) bool {
	code := listwatch.CodeOf(err)
	return code == listwatch.Unsupported || code == listwatch.Invalid
}

// handle applies the action that the policy chooses for end. It returns the error that ends
// Run, or nil.
func (r *Reflector) handle(end WatchEnd) error {
	if r.Resume.Advanced && r.Resume.Synced {
		r.repeats, r.laggingSince = 0, time.Time{}
	}
	r.Resume.Advanced = false
	action := r.Policy.decide(end, &r.Resume)
	switch action {
	case Stop:
		return end.Err
	case Retry:
		if end.HasLived() {
			r.repeats = 0
		}
	case RetryOnce:
		if r.repeats++; r.repeats > 1 {
			return end.Err
		}
	case AwaitVersion:
		if r.laggingSince.IsZero() {
			r.laggingSince = time.Now()
		} else if time.Since(r.laggingSince) > LagTolerance {
			action = RelistNewest
		}
	}
	if action != Relist && action != RelistNewest && r.Resume.Synced {
		return nil
	}
	return r.restart(action, end.Err)
}

// restart makes the next watch begin with the state.
func (r *Reflector) restart(action Action, cause error) error {
	if r.Policy.Restart != nil {
		if err := r.Policy.Restart(cause, &r.Resume); err != nil {
			return err
		}
	}
	switch {
	case action == RelistNewest:
		r.requestState(0)
	case action == Relist && r.Resume.Synced:
		r.requestState(r.Resume.Newest())
	}
	r.laggingSince = time.Time{}
	return nil
}

// requestState makes the next watch begin with a state that is not older than v. If v is zero, the
// watch begins with the newest state.
func (r *Reflector) requestState(v listwatch.Version) {
	r.Resume = ResumePoint{}
	r.Start, r.StartVersion = listwatch.StartAt, v
	if v == 0 {
		r.Start = listwatch.StartNewest
	}
}
