package wswatch

import (
	"errors"
	"fmt"
	"io"

	"github.com/listwatch/listwatch"
)

// The close codes of RFC 6455 section 7.4.1 that have a meaning for watches.
const (
	CloseNormal    = 1000
	CloseGoingAway = 1001
	CloseProtocol  = 1002
	CloseNoStatus  = 1005 // stands for a close frame without a code; never sent
	CloseBadText   = 1007
	ClosePolicy    = 1008
	CloseTooBig    = 1009
)

// A Violation is a violation of the protocol by the peer, and the close code that reports it to
// the peer.
type Violation struct {
	Code   int
	Reason string
}

// Error returns the code and the reason.
func (v *Violation) Error() string { return fmt.Sprintf("close %d: %s", v.Code, v.Reason) }

// ErrTooBig returns the violation of a message with more than limit bytes.
func ErrTooBig(limit int64) *Violation {
	return &Violation{CloseTooBig, fmt.Sprintf("a message has more than %d bytes", limit)}
}

// A CloseFrame is the close frame of the peer, as an error.
type CloseFrame struct {
	Code   int
	Reason string
}

// Error returns the code and the reason.
func (c *CloseFrame) Error() string { return fmt.Sprintf("closed with code %d %q", c.Code, c.Reason) }

// receiveError returns the error of Receive after the close frame c of the server.
func (c *CloseFrame) receiveError() error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Remote: true, Message: c.Error()}
	switch c.Code {
	case CloseNormal, CloseGoingAway:
		return io.EOF
	case CloseProtocol, CloseBadText, CloseTooBig, 1003, 1010:
		// The server claims that this end has violated the protocol.
		e.Code = listwatch.Corrupt
	}
	return e
}

// CutError returns the error of Receive if the connection ended without a close frame, which is
// close code 1006 of rfc6455#section-7.1.5. withinMessage is true if a message was incomplete.
func CutError(cause error, withinMessage bool) error {
	e := &listwatch.Error{
		Code: listwatch.Unavailable, Op: "receive", Message: "the connection ended without a close frame",
	}
	switch {
	case withinMessage:
		e.Message += ", within an event"
		e.Err = fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, cause)
	case !errors.Is(cause, io.EOF) && !errors.Is(cause, io.ErrUnexpectedEOF):
		// Err must be neither io.EOF, which would mean a clean end, nor io.ErrUnexpectedEOF, which
		// would mean an end within an event.
		e.Err = cause
	}
	return e
}
