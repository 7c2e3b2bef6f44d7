package client

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// decide returns how a Reflector continues after a watch has ended or a request has failed. Stop
// means that no later connection can resume the watch.
func (c *connections) decide(end reflector.WatchEnd, at *reflector.ResumePoint) reflector.Action {
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
		case !end.Opened || c.remote.Header == nil && c.remote.HTTPClient == nil:
		case end.HasLived():
			return reflector.Retry
		default:
			return reflector.RetryOnce
		}
	}
	return reflector.Stop
}

// mayRefuseWatchList reports whether err may mean that the server cannot send initial events.
// Servers that do not know sendInitialEvents respond with 400 or 422.
func mayRefuseWatchList(err error) bool {
	e := listwatch.AsError(err)
	return e.Remote && (e.Status == http.StatusUnprocessableEntity || e.Status == http.StatusBadRequest)
}

// isNoContent reports whether the server responded with status 204. In response to a watch, this
// status asks an EventSource not to reconnect (HTML, section 9.2.3).
func isNoContent(err error) bool {
	e := listwatch.AsError(err)
	return e != nil && e.Remote && e.Status == http.StatusNoContent
}
