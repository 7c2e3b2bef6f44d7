package history

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

func expired(want, floor listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.Expired,
		Message: fmt.Sprintf("too old resource version: %d (%d)", want, floor),
	}
}

// listExpired is the error of a list at a version before the floor, with Kubernetes' text.
func listExpired() error {
	return &listwatch.Error{Code: listwatch.Expired, Message: "The resourceVersion for the provided list is too old."}
}

// continueExpired is the error for a continue token whose state is no longer retained. It
// offers a token that continues with the newest state. A client that uses that token gets
// pages of different versions.
func continueExpired(from ContinueToken) error {
	return &listwatch.Error{
		Code: listwatch.Expired,
		Message: "The provided continue parameter is too old to display a consistent list result. You can start a new list without the " +
			"continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with " +
			"the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the " +
			"first chunk was returned and now may show up in the list.",
		Continue: ContinueToken{Key: from.Key, Bytewise: from.Bytewise}.Encode(),
	}
}

// fellBehind is the error of a cursor whose next record was dropped.
func fellBehind(floor listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.Expired,
		Message: fmt.Sprintf("the watch fell behind the history, which now starts at version %d; list again", floor),
	}
}
