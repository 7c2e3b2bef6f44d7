package framing

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/listwatch/listwatch"
)

// corrupt returns the error of an event that violates the protocol.
func corrupt(message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "decode event", Message: message, Err: cause}
}

// encodeError returns the error of an event that a framing cannot encode.
func encodeError(code listwatch.Code, message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: code, Op: "encode event", Message: message, Err: cause}
}

// truncated returns the error of a stream that ended within an event.
func truncated() *listwatch.Error {
	return corrupt("the stream ended within an event", io.ErrUnexpectedEOF)
}

func tooLarge(limit int) *listwatch.Error {
	return corrupt(fmt.Sprintf("the event is larger than the limit of %d bytes", limit), nil)
}

var errDepth = errors.New("nested more than " + strconv.Itoa(maxDepth-1) + " levels deep")

// excerpt returns the beginning of data, quoted, for an error message.
func excerpt(data []byte) string {
	const most = 64
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
