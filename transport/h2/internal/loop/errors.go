package loop

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/net/http2"
)

// A connError ends the connection with GOAWAY.
type connError struct {
	code  http2.ErrCode
	cause string
}

func (e connError) Error() string { return fmt.Sprintf("http2: %v: %s", e.code, e.cause) }

func asConnError(err error) (connError, bool) {
	if e, ok := errors.AsType[connError](err); ok {
		return e, true
	}
	if code, ok := errors.AsType[http2.ConnectionError](err); ok {
		return connError{http2.ErrCode(code), "the client has violated the protocol"}, true
	}
	if errors.Is(err, http2.ErrFrameTooLarge) {
		return connError{http2.ErrCodeFrameSize, "the frame is larger than SETTINGS_MAX_FRAME_SIZE"}, true
	}
	return connError{}, false
}

// The errors of streams.
var (
	errClosed    = errors.New("http2: the stream is closed")
	errConn      = errors.New("http2: the client has disconnected")
	errReset     = errors.New("http2: the client has reset the stream")
	errStalled   = &net.OpError{Op: "write", Net: "http2", Err: os.ErrDeadlineExceeded}
	errAborted   = errors.New("http2: the handler has aborted the stream")
	errMalformed = errors.New("http2: the client has violated the protocol")
)
