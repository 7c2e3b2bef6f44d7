package harness

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// Got describes the event or the error that a client returned, for a failure message. It uses the
// words of the rules and of the control hook instead of Go's, because clients under test are
// written in any language.
func Got(e listwatch.Event, err error) string {
	if err != nil {
		return GotError(err)
	}
	return fmt.Sprintf("%q at version %d", EventLine(e), e.Version)
}

// GotRaw is like [Got] for an event that is not decoded.
func GotRaw(w framing.WatchEvent, err error) string {
	if err != nil {
		return GotError(err)
	}
	return fmt.Sprintf("%s %.200s", w.Type, w.Object)
}

// GotError describes an error that a client returned; see [Got].
func GotError(err error) string {
	switch {
	case err == nil:
		return "no error"
	case err == io.EOF:
		return "a clean end"
	case errors.Is(err, context.DeadlineExceeded):
		return "nothing in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("a stream that broke within an event (%v)", err)
	}
	return fmt.Sprintf("an error of code %v (%v)", listwatch.CodeOf(err), err)
}
