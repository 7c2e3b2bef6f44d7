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
	// RetryOnce opens the next watch. If the Policy chooses RetryOnce a second time, the action is
	// Stop instead. Progress starts the count again: a complete state, a later event or bookmark,
	// or a watch that lived for a second and ended with Retry.
	RetryOnce
	// AwaitVersion opens the next watch. After the source has lagged for [LagTolerance], the action
	// is the same as RelistNewest.
	AwaitVersion
	// Relist requests a state that is at least as new as the newest event.
	Relist
	// RelistNewest requests the newest state of the source, even if its version is below the
	// version of the newest event received, as when versions have started over.
	RelistNewest
	// Stop means that the Policy knows no way to resume. Run then returns the error of the watch if
	// [Reflector.Restart] is set, and otherwise applies the rules for any Source.
	Stop
)

// A Policy decides how a Reflector continues after a watch of a Source has failed. A Reflector
// with the zero Policy applies the rules for any Source: it relists if the history has expired,
// or if an event was malformed or rejected by the Sink.
type Policy struct {
	// Decide returns the next action after the end of a watch, which the WatchEnd describes. The
	// ResumePoint is the position at which the next watch would resume. Decide is not called if the
	// Sink rejected an event of a watch. It may be nil.
	Decide func(end WatchEnd, at *ResumePoint) Action
	// MayRefuseWatchList reports whether err, which a watch with initial events returned, may mean
	// that the Source does not support them. If MayRefuseWatchList is nil, every
	// [listwatch.Unsupported] and [listwatch.Invalid] may mean that.
	MayRefuseWatchList func(err error) bool
	// WatchList remembers whether the Source can stream its state. All Reflectors of the Source
	// may share it. If nil, the Reflector uses its own.
	WatchList *WatchListSupport
	// Backoff is used if the Backoff of the Reflector is zero.
	Backoff listwatch.Backoff
	// Lost is called before the delay after a failure, unless Run ends. err is the error of the
	// watch, or io.EOF after a clean end. Lost may be nil.
	Lost func(err error, wait time.Duration)
}

// Direct returns the Source that a Reflector should follow in place of s, and its Policy. For a
// client.Remote, which reconnects itself, it returns a Source whose watchers are single
// connections. So only one loop recovers from their failures, and events pass through one queue
// less. For any other Source it returns s and the zero Policy.
//
// The Remote is recognized by its method Connect, whose result has a Policy and unwraps to s.
// Direct never replaces a wrapper with the Source that it wraps, because the wrapper may change
// requests and events. It does not call Unwrap of s. If a wrapper embeds a Remote, and so
// inherits Connect, the result of Connect unwraps to the Remote and not to the wrapper.
func Direct(s listwatch.Source) (listwatch.Source, Policy) {
	if remote, ok := s.(connector); ok {
		if c, ok := remote.Connect(0).(connections); ok && c.Unwrap() == s {
			return c, c.Policy()
		}
	}
	return s, Policy{}
}

// A connector is a client.Remote. A timeout of zero does not limit the connections.
type connector interface {
	Connect(timeout time.Duration) listwatch.Source
}

// connections is the result of Connect.
type connections interface {
	listwatch.Source
	Unwrap() listwatch.Source
	Policy() Policy
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
