package watchcache

import (
	"errors"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// readTimeout limits the time that a read waits for the first state, for Options.Newest, and for a
// version.
const readTimeout = 3 * time.Second

var (
	errClosed   = unavailable("the cache is closed", nil)
	errNotReady = unavailable("the cache has no state yet: its owner has not called Replace", nil)
	errOfGroup  = invalid("the cache belongs to a Group: call the methods of the Group")
	errSlow     = unavailable(fmt.Sprintf("the newest version was not reported within %v", readTimeout), nil)
)

func unavailable(message string, err error) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Op: "watchcache", Message: message, Err: err,
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// newestError returns the error for the reads that need a version from Options.Newest. err is the
// error that Options.Newest has returned.
func newestError(err error) error {
	if _, ok := errors.AsType[*listwatch.Error](err); ok {
		return err
	}
	return unavailable("read the newest version (a read with resourceVersion=0 does not need it)", err)
}

func invalid(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "watchcache", Message: fmt.Sprintf(format, args...)}
}

// errVersionZero is the error for a state or change without a version.
func errVersionZero(what string) error {
	return invalid("%s has version 0: versions start at 1, also for an empty collection", what)
}

// incompleteVersion is the error of a watch from a version whose readers may lack a change.
func incompleteVersion(v listwatch.Version) error {
	return &listwatch.Error{
		Code: listwatch.Expired, Op: "watchcache",
		Message: fmt.Sprintf("a change was received after version %d had been read; list again", v),
	}
}

// outOfOrder is the error of Apply if the cache has passed the version of a change.
func outOfOrder(v, reached listwatch.Version) error {
	return &listwatch.Error{
		Code: listwatch.Corrupt, Op: "watchcache",
		Message: fmt.Sprintf("a change of version %d was applied after version %d: apply the changes in order, "+
			"and all changes of a version at once, or call Replace", v, reached),
	}
}
