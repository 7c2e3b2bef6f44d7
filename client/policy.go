package client

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// maxUnproductive is the number of consecutive responses without an event after which a
// transport is demoted.
const maxUnproductive = 2

// decide is the Decide function of the follower's Policy: it chooses how the Reflector
// continues after a response has ended or a request has failed.
func (f *follower) decide(end reflector.WatchEnd, at *reflector.ResumePoint) reflector.Action {
	if end.Opened {
		f.recordFailure(end, at)
	}
	action := f.classify(end, at)
	if action != reflector.Stop && listwatch.CodeOf(end.Err) == listwatch.Unauthorized {
		f.refresh = true
	}
	return action
}

// classify returns the action for a failure: Stop if only the reader of the watcher can handle it,
// and otherwise a way to continue.
func (f *follower) classify(end reflector.WatchEnd, at *reflector.ResumePoint) reflector.Action {
	switch listwatch.CodeOf(end.Err) {
	case listwatch.Unavailable, listwatch.TooSlow:
		return reflector.Retry
	case listwatch.Corrupt:
		return reflector.RetryOnce
	case listwatch.Unknown:
		if !isNoContent(end.Err) {
			return reflector.Retry
		}
	case listwatch.NotYet:
		if at.Confirmed {
			return reflector.AwaitVersion
		}
	case listwatch.Unauthorized:
		// [Remote.authorized] has already retried a refused request with fresh credentials. So
		// retry only a watch that was open, and only if Header or a RoundTripper may have fresh
		// credentials. If the watch was open for a second, its credentials were valid and have
		// expired. That happens again and again, even if no object changes, so do not limit these
		// retries.
		switch {
		case !end.Opened || f.remote.Header == nil && f.remote.HTTPClient == nil:
		case end.HasLived():
			return reflector.Retry
		default:
			return reflector.RetryOnce
		}
	}
	return reflector.Stop
}

// recordFailure demotes the transport of the response if that transport may be the reason why the
// watch ended.
func (f *follower) recordFailure(end reflector.WatchEnd, at *reflector.ResumePoint) {
	if end.Err == error(errIdle) && !at.Synced {
		// Some servers silently ignore sendInitialEvents and only wait for changes. So the
		// next attempt sends a list request to get the initial state.
		f.remote.state.watchList.MarkUnsupported()
	}
	if f.response.received > 0 || end.IsClean() && !end.IsBrief() {
		f.unproductive = 0
	} else {
		f.unproductive++
	}
	if f.response.malformed || f.unproductive >= maxUnproductive {
		f.unproductive = 0
		f.remote.state.fallback.demote(f.response.candidate)
	}
}

// restart is the Restart function of the follower's Policy. The watch can only start over if the
// reader has not received any event. Otherwise the new state may lack objects that the reader has
// received, and only the reader can drop them. If the initial events were cut short, the error
// quotes the cause and does not wrap it, because a wrapped io.EOF would look like a clean end.
func (f *follower) restart(cause error, at *reflector.ResumePoint) error {
	expired := &listwatch.Error{Code: listwatch.Expired, Op: "watch"}
	switch {
	case at.Synced:
		expired.Message = "the server no longer has version " + at.Version.String() + ": it has an older state, or an unrelated one"
		expired.Err = cause
	case !f.watcher.reset():
		expired.Message = "the connection ended within the initial events, so the state is incomplete; watch again (" + cause.Error() + ")"
	default:
		return nil
	}
	return expired
}

// mayRefuseWatchList is the MayRefuseWatchList function of the follower's Policy. Servers that do
// not know sendInitialEvents respond with 400 or 422.
func mayRefuseWatchList(err error) bool {
	e := listwatch.AsError(err)
	return e.Remote && (e.Status == http.StatusUnprocessableEntity || e.Status == http.StatusBadRequest)
}

// isNoContent reports whether the server responded with status 204. This status asks an EventSource
// not to reconnect (HTML, section 9.2.3).
func isNoContent(err error) bool {
	e := listwatch.AsError(err)
	return e != nil && e.Remote && e.Status == http.StatusNoContent
}
