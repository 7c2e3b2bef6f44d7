package transport

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// A Guard bounds the writes of one stream in the way that its transport can. Begin is called before each write and End after it;
// what they guard against is a peer that takes nothing.
type Guard interface {
	Begin()
	End()
	// Abort makes a write that waits fail, and ends the stream so that the client does not take it for complete. It may be
	// called while a write waits and when none does.
	Abort() error
}

// A ResponseSender is a Sender over an http.ResponseWriter: the standard path, on which the stream lives as long as the handler.
type ResponseSender struct {
	// Immutable after construction.
	w      http.ResponseWriter
	rc     *http.ResponseController
	guard  Guard
	cancel context.CancelFunc

	closed  atomic.Bool
	writing sync.Mutex // held while w is used
}

// OpenResponse answers r with the headers of w and status 200, sends them at once, and returns the stream of it. Its Done is that of
// r's context, or Close. The handler must close the Sender before it returns: that is what keeps other goroutines from using w then.
// An error is a *listwatch.Error; if it is of code Unknown, nothing has been written.
func OpenResponse(w http.ResponseWriter, r *http.Request, encoder *Encoder, guard Guard) (*Stream, error) {
	if !canFlush(w) {
		return nil, errNoFlush(w)
	}
	rc := http.NewResponseController(w)
	// Time-outs of the http.Server are for requests that end; a stream has its own. Where they can't be reached there is
	// nothing to lift, or nothing that could be done.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	guard.Begin()
	w.WriteHeader(http.StatusOK)
	err := rc.Flush()
	guard.End()
	if err != nil {
		return nil, brokenSend(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	s := &ResponseSender{w: w, rc: rc, guard: guard, cancel: cancel}
	return &Stream{Sender: s, Encoder: encoder, Done: ctx.Done()}, nil
}

// Send is [Sender.Send].
func (s *ResponseSender) Send(frames [][]byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed.Load() {
		return errSenderClosed
	}
	err := Coalesce(frames, s.write)
	if err == nil {
		s.guard.Begin()
		err = s.rc.Flush()
		s.guard.End()
	}
	if err != nil {
		return brokenSend(err)
	}
	return nil
}

func (s *ResponseSender) write(p []byte) error {
	s.guard.Begin()
	_, err := s.w.Write(p)
	s.guard.End()
	return err
}

// Close is [Sender.Close]. Finished and GoingAway take effect when the handler returns. Abort takes effect at once where the
// connection can be reached through w; otherwise it returns an error, and the handler must panic with [http.ErrAbortHandler], which
// is right after every Abort.
func (s *ResponseSender) Close(end End) error {
	if s.closed.Swap(true) {
		// The handler may be about to return: another goroutine's Close must be through with w by then.
		s.writing.Lock()
		defer s.writing.Unlock()
		return nil
	}
	defer s.cancel()
	if end == Abort {
		return s.guard.Abort() // without the lock: it is what ends a write that waits
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.guard.Begin() // the last bytes are written by net/http when the handler has returned
	return nil
}

var errSenderClosed = &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Message: "the stream is closed"}

func brokenSend(err error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Err: err}
}

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
