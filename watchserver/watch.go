package watchserver

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// watch opens a watch and serves it: here, where the stream lives in the handler, or on a goroutine of its own, where the transport has
// taken the connection over. An error means that nothing has been written.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, t Endpoint, q request) error {
	client := s.clientOf(r)
	if err := s.live.admit(client, s.Limits); err != nil {
		if s.live.drains() && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		return err
	}
	entered := false
	defer func() {
		if !entered { // also where opening panicked, which is net/http's to handle
			s.live.dismiss(client)
		}
	}()
	st, err := s.open(w, r, t, q)
	if err != nil {
		return err
	}
	st.about.Client = client
	s.live.enter(st)
	entered = true
	if st.out.Detached {
		go st.run() // Drain waits for it
	} else if end := st.run(); end == transport.Abort {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) open(w http.ResponseWriter, r *http.Request, t Endpoint, q request) (*stream, error) {
	shape, r, err := represent(r, s.framings(), t.Represent, false)
	if err != nil {
		return nil, err
	}
	watcher, err := t.Source.Watch(r.Context(), q.Query)
	if err != nil {
		if !inStream(err) {
			return nil, err
		}
		watcher = failed{err}
	}
	out, name, err := s.accept(w, r)
	if err != nil {
		watcher.Close()
		return nil, err
	}
	if shape != nil {
		out.Encoder = out.Encoder.WithRepresentation(shape)
	}
	st := newStream(s, t, q, watcher, out)
	st.about = Watch{
		Transport: name, MediaType: out.Encoder.Framer.MediaType(), URL: r.URL.RequestURI(), Opened: time.Now(),
		Compression: out.Encoder.Compression(),
	}
	return st, nil
}

// accept opens the stream over the first transport that claims r, and returns the name of that.
func (s *Server) accept(w http.ResponseWriter, r *http.Request) (*transport.Stream, string, error) {
	for _, tr := range s.transports() {
		if tr.Claims(r) {
			out, err := tr.Accept(w, r, s.transportOptions())
			return out, tr.Name(), err
		}
	}
	return nil, "", &listwatch.Error{Code: listwatch.Unsupported, Status: http.StatusHTTPVersionNotSupported, Message: "no transport for " + r.Proto}
}

func (s *Server) framings() *framing.Registry {
	if s.Framings != nil {
		return s.Framings
	}
	return framing.Default()
}

func (s *Server) transportOptions() transport.Options {
	return transport.Options{Framings: s.Framings, WriteTimeout: s.Limits.WriteTimeout, PingInterval: s.Timing.Heartbeat}
}

// inStream reports whether a watch that can't begin for err is told so by an ERROR event, as one that can't go on is: what depends on
// the history is said in the stream, so that clients have one place to look.
func inStream(err error) bool {
	return errors.Is(err, listwatch.Expired) || errors.Is(err, listwatch.NotYet)
}

func newStream(s *Server, t Endpoint, q request, w listwatch.Watcher, out *transport.Stream) *stream {
	now := time.Now()
	st := &stream{
		server: s, out: out, marks: q.Bookmarks, source: listwatch.Describe(t.Source),
		wakeup: make(chan struct{}, 1), batchBytes: cmp.Or(s.Limits.BatchBytes, DefaultBatchBytes),
	}
	if st.batchBytes < 0 {
		st.batchBytes = 1 << 30
	}
	var polls bool
	if st.poller, polls = w.(listwatch.Poller); !polls {
		st.poller = newPump(w, s.logger())
	}
	switch least := s.Timing.or(s.Timing.Timeout, DefaultTimeout); {
	case q.timeout > 0:
		st.end = now.Add(q.timeout)
	case least > 0:
		st.end = now.Add(spread(least, 2*least))
	}
	st.bookmark = st.nextBookmark(now)
	if s.heartbeat() > 0 {
		st.beat = now.Add(s.heartbeat())
	}
	return st
}

func (s *Server) heartbeat() time.Duration { return s.Timing.or(s.Timing.Heartbeat, DefaultHeartbeat) }

// spread returns a duration between least and most, at random.
func spread(least, most time.Duration) time.Duration {
	return least + rand.N(max(most-least, 0)+1)
}

// longest is what the durations of [Timing] are cut to: a year is as good as any more, and can be doubled.
const longest = 365 * 24 * time.Hour

// or returns d, or its default where it is zero.
func (t Timing) or(d, zero time.Duration) time.Duration { return min(cmp.Or(d, zero), longest) }

// wake makes run call step. It never blocks.
func (s *stream) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// run drives the stream on one goroutine until it ends, and returns how it ended.
func (s *stream) run() (end transport.End) {
	end = transport.Abort
	var cause error
	defer func() {
		if p := recover(); p != nil {
			end, cause = s.contain(p)
		}
		s.close(end, cause)
	}()
	s.server.Trace.opened(s)
	if opening := s.out.Encoder.Opening(); len(opening) > 0 {
		if cause = s.out.Sender.Send([][]byte{opening}); cause != nil {
			return end
		}
	}
	end, cause = s.drive()
	return end
}

func (s *stream) drive() (transport.End, error) {
	wake := s.wake // made once: a method value is an allocation
	timer := time.AfterFunc(forever, wake)
	defer timer.Stop()
	var set time.Time // when the timer fires or has fired
	for {
		now := time.Now()
		again, err := s.step(now)
		if err != nil {
			return endOf(err), err
		}
		if again.Equal(now) {
			continue
		}
		// A timer that fires too early costs a step; to set it again for each event would cost more.
		if !again.IsZero() && (again.Before(set) || !set.After(now)) {
			set = again
			timer.Reset(set.Sub(now))
		}
		s.poller.Wake(wake)
		select {
		case <-s.wakeup:
		case <-s.out.Done:
			return transport.Abort, errGone
		}
	}
}

var errGone = errors.New("the client is gone")

const forever = time.Duration(math.MaxInt64)

// endOf returns how the transport ends a stream that step ended with err. A client that could be told what went wrong has got a
// complete stream.
func endOf(err error) transport.End {
	if _, ok := errors.AsType[*sendError](err); ok {
		return transport.Abort
	}
	if errors.Is(err, errDraining) {
		return transport.GoingAway
	}
	return transport.Finished
}

// contain turns a panic of the source or of a framing into an error, for the log and, unless the panic fell within a write, for the
// client.
func (s *stream) contain(p any) (end transport.End, err error) {
	err = &listwatch.Error{Code: listwatch.Unknown, Op: "watch", Message: "internal error"}
	s.server.logger().Error("watchserver: panic in a watch", "url", s.about.URL, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if s.writing.Load() != 0 {
		return transport.Abort, err
	}
	frame, e := s.out.Encoder.Error(err)
	if e == nil {
		e = s.out.Sender.Send([][]byte{frame})
	}
	if e != nil {
		return transport.Abort, err
	}
	return transport.Finished, err
}

func (s *stream) close(end transport.End, cause error) {
	if errors.Is(cause, errDone) {
		cause = nil
	}
	s.poller.Close()
	s.out.Sender.Close(end) // an error means that the client is gone
	s.server.live.leave(s)
	s.server.Trace.closed(s, cause)
}

// describe returns what is known of s now.
func (s *stream) describe() Watch {
	w := s.about
	w.Events, w.Bytes, w.Version = s.events.Load(), s.bytes.Load(), listwatch.Version(s.sent.Load())
	if since := s.writing.Load(); since != 0 {
		w.Writing = time.Since(w.Opened) - time.Duration(since)
	}
	return w
}
