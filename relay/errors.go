package relay

import (
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

// errEnd is how watchers end with the relay: cleanly, so that clients go on elsewhere, or here when it is back.
var errEnd = io.EOF

var errClosed = &listwatch.Error{Code: listwatch.Unavailable, Op: "relay", Message: "the relay is closed"}

// retryAfter is how long a reader is told to wait for a relay that has no state yet.
const retryAfter = time.Second

// notReady is the error of a read before there is a state. The cause is told and not wrapped: its code is about the relay and not about
// its reader.
func notReady(cause error) error {
	message := "the state of the upstream is not here yet"
	if cause != nil {
		message += ": " + cause.Error()
	}
	return unavailable(message)
}

// cantAsk is the error of a read of the newest state where the upstream does not say how far it is.
func cantAsk(cause error) error {
	return unavailable("the upstream can't be asked how new the newest state is; a read of any state (resourceVersion=0) needs no answer: " + cause.Error())
}

func unavailable(message string) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Op: "relay", Message: message, Details: &listwatch.Details{RetryAfter: retryAfter},
	}
}

// anotherEpoch is the error of what is of an epoch before.
func anotherEpoch(was, is string) error {
	return &listwatch.Error{
		Code: listwatch.Expired, Op: "relay", Message: "the upstream's versions have begun anew: its epoch was " + was + " and is " + is,
	}
}

// errReplaced is why a reader of the newest state waits for another generation: its past is still being read.
var errReplaced = &listwatch.Error{
	Code: listwatch.Expired, Op: "relay", Message: "the upstream's versions are not those of the state that is here, and the new one is being read",
}

// wentBack is the error of watchers of an upstream that has lost what they saw.
func wentBack(was, is listwatch.Version) error {
	return &listwatch.Error{
		Code: listwatch.Expired, Op: "relay", Message: "the upstream was at version " + was.String() + " and is at " + is.String() + ": it has an older state",
	}
}

func corrupt(message string) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "relay", Message: message}
}

// tornVersion is the error of a watch from a version that was shown in part.
func tornVersion(v listwatch.Version) error {
	return &listwatch.Error{Code: listwatch.Expired, Op: "relay", Message: "the changes of version " + v.String() + " came in pieces; list again"}
}
