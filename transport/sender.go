package transport

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// A Guard bounds the writes of one response in the way its version of HTTP can, against a peer that takes nothing.
type Guard interface {
	// Begin is called before each write and End after the last of a batch: a write that has not ended a while after its
	// Begin is made to fail.
	Begin()
	End()
	// Abort ends the response so that the client does not take it for complete. No write is under way, and the deadline
	// for writes has been set to the past.
	Abort() error
}

// A ResponseSender is a [Sender] over an http.ResponseWriter: the standard path, on which the stream lives as long as the handler.
type ResponseSender struct {
	// Immutable after construction.
	w        http.ResponseWriter
	rc       *http.ResponseController
	guard    Guard
	patience time.Duration // how long Close waits for Send; negative: for ever
	cancel   context.CancelFunc
	unread   bool // the request has a body, which nobody reads

	closed atomic.Bool
	ended  chan struct{} // closed when the first Close is through with w
	fault  error         // what Close returns; written before ended is closed
	turn   Turn          // held while w is used
	body   *Body         // owned by the holder of turn
}

// OpenResponse answers r with the headers of w and status 200, sends them at once, and returns the stream. Its Done is that of r's
// context, or Close. The handler must close the Sender before it returns: that keeps other goroutines from using w after it. Where w
// can't be flushed, so that no stream is possible, it is an error and nothing has been written.
func OpenResponse(w http.ResponseWriter, r *http.Request, o Options, encoder *Encoder, guard Guard) (*Stream, error) {
	if !canFlush(w) {
		w.Header().Del("Content-Encoding") // the answer will be another one
		return nil, errNoFlush(w)
	}
	rc := http.NewResponseController(w)
	s := &ResponseSender{
		w: w, rc: rc, guard: guard, patience: o.WriteTimeoutOrDefault(), ended: make(chan struct{}), turn: NewTurn(), body: encoder.NewBody(),
	}
	if s.unread = r.ContentLength != 0; s.unread && r.ProtoMajor == 1 {
		// What comes of the body must not be taken for the next request.
		w.Header().Set("Connection", "close")
	}
	// Time-outs of the http.Server are for requests that end; a stream has its own. Where they can't be reached there is
	// nothing to lift, or nothing that could be done.
	_ = rc.SetReadDeadline(time.Time{})
	// Else net/http would wait for the body of a request that has one before it sends a header.
	_ = rc.EnableFullDuplex()
	_ = rc.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(r.Context())
	s.cancel = cancel
	w.WriteHeader(http.StatusOK)
	if err := s.begin(); err != nil {
		s.cancel() // the answer has begun, so this is a stream, though one that broke at once
	}
	return &Stream{Sender: s, Encoder: encoder, Done: ctx.Done()}, nil
}

func (s *ResponseSender) begin() error {
	if head := s.body.Begin(); head != nil {
		if err := s.write(head); err != nil {
			return err
		}
	}
	return s.flush()
}

// Send is that of [Sender].
func (s *ResponseSender) Send(frames [][]byte) error {
	s.turn.Take(-1)
	defer s.turn.Release()
	if s.closed.Load() {
		return ErrSenderClosed
	}
	s.body.Take(frames)
	err := Coalesce(frames, s.write)
	if err == nil {
		err = s.flush()
	}
	s.guard.End()
	if err != nil {
		return BrokenSend(err)
	}
	return nil
}

func (s *ResponseSender) write(p []byte) error {
	s.guard.Begin()
	_, err := s.w.Write(p)
	return err
}

func (s *ResponseSender) flush() error {
	s.guard.Begin()
	defer s.guard.End()
	return s.rc.Flush()
}

// Close is that of [Sender]. Finished and GoingAway take effect when the handler returns. Abort takes effect at once where w leads
// to the connection; where it doesn't, Close returns an error, now and when called again, and the handler must panic with
// [http.ErrAbortHandler]. That is right after every Abort.
func (s *ResponseSender) Close(end End) error {
	if s.closed.Swap(true) {
		<-s.ended // the handler may be about to return, and another goroutine in its Close
		return s.fault
	}
	s.fault = s.close(end)
	close(s.ended)
	s.cancel()
	return s.fault
}

func (s *ResponseSender) close(end End) error {
	if s.unread {
		_ = s.rc.SetReadDeadline(longAgo) // else net/http would wait for the rest of it
	}
	if end != Abort && s.turn.Take(s.patience) {
		defer s.turn.Release()
		defer s.guard.End()
		if tail := s.body.End(); tail != nil {
			if err := s.write(tail); err != nil {
				return BrokenSend(err)
			}
			return nil
		}
		s.guard.Begin() // net/http writes the end when the handler has returned
		return nil
	}
	if err := s.rc.SetWriteDeadline(longAgo); err != nil {
		return &listwatch.Error{Code: listwatch.Unknown, Op: "abort", Err: err}
	}
	s.turn.Take(-1) // a write that waited has failed
	defer s.turn.Release()
	return s.guard.Abort()
}

var longAgo = time.Unix(1, 0)

// ErrSenderClosed is what Send returns after Close.
var ErrSenderClosed error = &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Message: "the stream is closed", Err: net.ErrClosed}

// BrokenSend returns the error of a Send that err made fail.
func BrokenSend(err error) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Err: err}
}

// A Turn is a lock that can be waited for with a limit, and whose waiters testing/synctest takes for blocked.
type Turn chan struct{}

// NewTurn returns a Turn that is free.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for the turn and takes it; false: it was not free within limit. A negative limit is none.
func (t Turn) Take(limit time.Duration) bool {
	select {
	case t <- struct{}{}:
		return true
	default:
	}
	var late <-chan time.Time
	if limit >= 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case t <- struct{}{}:
		return true
	case <-late:
		return false
	}
}

// Release gives the turn back.
func (t Turn) Release() { <-t }

// BatchBytes is how many bytes go into one write at most, except for a single frame that is larger.
const BatchBytes = 64 << 10

var batches = sync.Pool{New: func() any { return new([BatchBytes]byte) }}

// Coalesce hands frames to write in order, in pieces of at most [BatchBytes]: small frames together, by one copy, a frame alone as it
// is. write must not keep its argument. It stops at the first error.
func Coalesce(frames [][]byte, write func(p []byte) error) error {
	if len(frames) == 1 {
		return writePieces(frames[0], write)
	}
	batch := batches.Get().(*[BatchBytes]byte)
	defer batches.Put(batch)
	n := 0
	for _, f := range frames {
		if len(f) > BatchBytes-n && n > 0 {
			if err := write(batch[:n]); err != nil {
				return err
			}
			n = 0
		}
		if len(f) > BatchBytes {
			if err := writePieces(f, write); err != nil {
				return err
			}
			continue
		}
		n += copy(batch[n:], f)
	}
	if n == 0 {
		return nil
	}
	return write(batch[:n])
}

// writePieces writes p in pieces that a slow peer can take within the write time-out.
func writePieces(p []byte, write func(p []byte) error) error {
	for len(p) > 0 {
		n := min(len(p), BatchBytes)
		if err := write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
