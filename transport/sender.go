package transport

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A responseSender is a [Sender] over an http.ResponseWriter. Its stream ends when the
// handler returns.
type responseSender struct {
	// Immutable after construction.
	w            http.ResponseWriter
	rc           *http.ResponseController
	guard        writeGuard
	closeTimeout time.Duration // the time that Close waits for Send; negative means no limit
	cancel       context.CancelFunc
	unreadBody   bool // the request has a body, which the server does not read

	closed   atomic.Bool
	finished chan struct{} // closed when the first Close no longer uses w
	closeErr error         // the result of Close; written before finished is closed
	writing  connio.Lock   // held while w is used
	coding   *StreamCoding // owned by the holder of the lock writing
}

// OpenResponse responds to r with status 200 and the headers of w, which are sent
// immediately, and returns the stream. encoder is the result of [Negotiate]. The stream is
// done when the context of r ends or the Sender is closed. The handler must
// close the Sender before it returns, because other goroutines must not use w after that.
//
// Abort takes effect immediately if w supports write deadlines and, for HTTP/1, hijacking.
// Otherwise every call of Close(Abort) returns an error, and the handler must panic with
// [http.ErrAbortHandler]. The handler may panic after every Abort. Finished and GoingAway take
// effect when the handler returns.
//
// If w cannot be flushed, events would not reach the client, so OpenResponse writes nothing and
// returns an error.
func OpenResponse(w http.ResponseWriter, r *http.Request, o Options, encoder *Encoder) (*Stream, error) {
	if !canFlush(w) {
		w.Header().Del("Content-Encoding") // the error response is not compressed
		return nil, errNoFlush(w)
	}
	rc := http.NewResponseController(w)
	timeout := o.WriteTimeoutOrDefault()
	s := &responseSender{
		w: w, rc: rc, guard: newWriteGuard(w, r, timeout), closeTimeout: timeout, finished: make(chan struct{}),
		coding: encoder.NewStreamCoding(),
	}
	if s.unreadBody = r.ContentLength != 0; s.unreadBody && r.ProtoMajor == 1 {
		// Otherwise net/http would parse the rest of the body as the next request.
		w.Header().Set("Connection", "close")
	}
	// The timeouts of the http.Server are for short requests; a stream has timeouts of its own.
	// The errors are ignored, because a w without deadlines has nothing to reset.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	// Without full duplex, net/http would read the request's body before it sends the
	// headers.
	_ = rc.EnableFullDuplex()
	ctx, cancel := context.WithCancel(r.Context())
	s.cancel = cancel
	w.WriteHeader(http.StatusOK)
	if err := s.begin(); err != nil {
		s.cancel() // the headers may have been sent, so return a stream, although a broken one
	}
	onDone := func(f func()) { context.AfterFunc(ctx, f) }
	return &Stream{Sender: s, Encoder: encoder, OnDone: onDone, Segments: o.Segments}, nil
}

func (s *responseSender) begin() error {
	if header := s.coding.Header(); header != nil {
		if err := s.write(header); err != nil {
			return err
		}
	}
	return s.flush()
}

// Send implements [Sender].
func (s *responseSender) Send(frames [][]byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed.Load() {
		return connio.ErrSenderClosed
	}
	s.coding.Apply(frames)
	err := connio.WriteBatched(frames, s.write)
	if err == nil {
		err = s.flush()
	}
	s.guard.end()
	if err != nil {
		return connio.SendError(err)
	}
	return nil
}

func (s *responseSender) write(p []byte) error {
	s.guard.begin()
	_, err := s.w.Write(p)
	return err
}

func (s *responseSender) flush() error {
	s.guard.begin()
	defer s.guard.end()
	return s.rc.Flush()
}

// Close implements [Sender]; see [OpenResponse].
func (s *responseSender) Close(end End) error {
	if s.closed.Swap(true) {
		<-s.finished // wait for the other call, because the handler may return after this one
		return s.closeErr
	}
	if s.unreadBody {
		_ = s.rc.SetReadDeadline(longAgo) // otherwise net/http would wait for the rest of the body
	}
	if end != Abort && s.writing.LockWithin(s.closeTimeout) {
		s.closeErr = s.complete()
		s.writing.Unlock()
	} else {
		s.closeErr = s.abort()
	}
	close(s.finished)
	s.cancel()
	return s.closeErr
}

// complete writes the trailer of the content coding. net/http writes the end of the
// response when the handler returns.
func (s *responseSender) complete() error {
	defer s.guard.end()
	if trailer := s.coding.Trailer(); trailer != nil {
		if err := s.write(trailer); err != nil {
			return connio.SendError(err)
		}
		return nil
	}
	s.guard.begin()
	return nil
}

func (s *responseSender) abort() error {
	if err := s.rc.SetWriteDeadline(longAgo); err != nil {
		return &listwatch.Error{Code: listwatch.Unknown, Op: "abort", Err: err}
	}
	s.writing.Lock() // does not wait long, because the deadline makes a write in progress fail
	defer s.writing.Unlock()
	return s.guard.abort()
}

var longAgo = time.Unix(1, 0)
