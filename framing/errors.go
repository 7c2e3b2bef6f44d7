package framing

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/listwatch/listwatch"
)

// corrupt returns the error of a peer that broke the protocol.
func corrupt(message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "read an event", Message: message, Err: cause}
}

// unfit returns the error of an event that can't be written as it is.
func unfit(code listwatch.Code, message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: code, Op: "write an event", Message: message, Err: cause}
}

// truncated returns the error of a stream that ended within an event.
func truncated() *listwatch.Error {
	return corrupt("the stream was cut off within an event", io.ErrUnexpectedEOF)
}

func tooLarge(limit int) *listwatch.Error {
	return corrupt(fmt.Sprintf("the event has more than the %d bytes allowed", limit), nil)
}

var errDepth = errors.New("nested more than " + strconv.Itoa(maxDepth-1) + " levels deep")

// excerpt quotes the beginning of what a peer sent, for a message.
func excerpt(data []byte) string {
	const most = 64
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
