package longpoll

import (
	"bytes"
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A stream passes data from the [transport.Sender] to the polls.
type stream struct {
	// Immutable after construction.
	timeout time.Duration // how long Send waits for a poll; negative means no limit
	data    chan []byte   // has room for one batch, so Send and the poll before it overlap
	done    chan struct{} // closed by the first Close

	ended atomic.Int32 // running, finished or aborted
	idle  *time.Timer  // owned by the holder of the token
}

const (
	running  int32 = iota
	finished       // the polls return the pending data and then the end
	aborted
)

func newStream(timeout time.Duration) *stream {
	return &stream{timeout: timeout, data: make(chan []byte, 1), done: make(chan struct{})}
}

// Send implements [transport.Sender].
func (x *stream) Send(frames [][]byte) error {
	if x.ended.Load() != running {
		return unavailable("the stream is closed", net.ErrClosed)
	}
	data := bytes.Join(frames, nil) // a copy, because frames belong to the caller
	if len(data) == 0 {
		return nil
	}
	var timeout <-chan time.Time
	if x.timeout > 0 {
		timeout = time.After(x.timeout)
	}
	select {
	case x.data <- data:
		return nil
	case <-x.done:
		return unavailable("the stream is closed", net.ErrClosed)
	case <-timeout:
		x.Close(transport.Abort)
		return unavailable("the client did not poll within the write timeout", os.ErrDeadlineExceeded)
	}
}

func unavailable(message string, cause error) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Message: message, Err: cause}
}

// Close implements [transport.Sender]. After a clean end the client has idleTime to poll for the
// rest.
func (x *stream) Close(end transport.End) error {
	state := finished
	if end == transport.Abort {
		state = aborted
	}
	if x.ended.CompareAndSwap(running, state) {
		close(x.done)
	}
	return nil
}

// next waits for data. If it returns no data, end says how the stream has ended, or has the value
// running if only the poll has to end.
func (x *stream) next(ctx context.Context) (data []byte, end int32) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	select {
	case data = <-x.data:
		return data, running
	case <-x.done:
	case <-ctx.Done():
	}
	select {
	case data = <-x.data: // sent before the end
		return data, running
	default:
		return nil, x.ended.Load()
	}
}
