package relay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

// errShutdown ends the watches when the relay is closed. It is a clean end, so clients reconnect.
var errShutdown = io.EOF

var errClosed = &listwatch.Error{Code: listwatch.Unavailable, Op: "relay", Message: "the relay is closed"}

var errNoResponse = errors.New("the upstream did not respond in time")

// retryAfter is the delay after which readers should retry while the relay cannot serve them.
const retryAfter = time.Second

// notServed is the error of a read of the newest state if the upstream no longer has the
// collection, such as a cluster whose CustomResourceDefinition was deleted.
func notServed(cause error) error {
	return &listwatch.Error{
		Code: listwatch.NotFound, Op: "relay", Message: "the upstream does not serve the collection",
		Err: errors.New(cause.Error()), // its code and details are for the relay
	}
}

// unavailable returns an error that quotes cause, which may be nil, for the operator of the relay.
// It does not wrap cause, because the code of cause is meant for the relay and not for the reader.
func unavailable(message string, cause error) error {
	e := &listwatch.Error{
		Code: listwatch.Unavailable, Op: "relay", Message: message, Details: &listwatch.Details{RetryAfter: retryAfter},
	}
	if cause != nil {
		e.Err = errors.New(cause.Error())
	}
	return e
}

// epochChanged is the error of a watch from a version of an earlier epoch.
func epochChanged(before, now string) error {
	return expired("the versions of the upstream have started over: its epoch was %s and is %s", before, now)
}

// errReplaced is the error of a read whose epoch is about to be replaced.
var errReplaced = expired(
	"the versions of the upstream have started over, and the relay does not have the new state yet",
)

// wentBack is the error that ends a watch if the upstream has lost versions that the watch
// has seen.
func wentBack(before, now listwatch.Version) error {
	return expired("the upstream was at version %d and is at version %d: it has an older state", before, now)
}

func expired(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Expired, Op: "relay", Message: fmt.Sprintf(format, args...)}
}

func corrupt(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "relay", Message: fmt.Sprintf(format, args...)}
}
