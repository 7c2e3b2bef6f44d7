package history

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// patience is how long a list or a watch waits for a version that is not there yet, as kube-apiserver does.
const patience = 3 * time.Second

var errNotYet = fmt.Errorf("not reached within %v", patience)

func tooLarge(want, have listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.NotYet,
		Message: fmt.Sprintf("Too large resource version: %d, current: %d", want, have),
		Details: &listwatch.Details{
			Causes:     []listwatch.Cause{{Reason: listwatch.CauseTooLarge, Message: "Too large resource version"}},
			RetryAfter: time.Second,
		},
	}
}

func expired(asked, floor listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.Expired,
		Message: fmt.Sprintf("too old resource version: %d (%d)", asked, floor),
	}
}

// listExpired is the error of a list at a version before the window, in Kubernetes' words.
func listExpired() error {
	return &listwatch.Error{Code: listwatch.Expired, Message: "The resourceVersion for the provided list is too old."}
}

// fellBehind is the error of a reader whom the window has passed.
func fellBehind(floor listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.Expired,
		Message: fmt.Sprintf("the watch fell behind the history, which now begins at %d; list again", floor),
	}
}
