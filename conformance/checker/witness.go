package checker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Witness records one logical watcher: sessions that follow each other and are one history to whoever reads them. One session is
// open at a time.
type Witness struct {
	// Immutable after construction.
	recorder *Recorder
	name     string

	mu      sync.Mutex
	session *SessionLog // guarded by mu; the one opened last
}

// Witness returns one for the watcher of that name, which no other has.
func (r *Recorder) Witness(name string) *Witness { return &Witness{recorder: r, name: name} }

// Open records that the watcher asks for q. Call it before the request, and end the session whatever comes of it.
func (w *Witness) Open(q listwatch.Query, transport string) *SessionLog {
	r := w.recorder
	s := &SessionLog{recorder: r, session: Session{Watcher: w.name, Asked: AskedOf(q), Transport: transport, Opened: r.Now()}}
	w.mu.Lock()
	w.session = s
	w.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = append(r.sessions, s)
	return s
}

func (w *Witness) current() *SessionLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// Source returns src, recorded: what is listed and watched through it is taken down. It is for one goroutine.
func (w *Witness) Source(src listwatch.Source, transport string) listwatch.Source {
	return &witnessed{w, src, transport}
}

type witnessed struct {
	witness   *Witness
	source    listwatch.Source
	transport string
}

func (s *witnessed) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	began := s.witness.recorder.Now()
	page, err := s.source.List(ctx, q)
	if err == nil && q.Continue == "" {
		s.witness.recorder.List(s.witness.name, began, q, page)
	}
	return page, err
}

func (s *witnessed) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	log := s.witness.Open(q, s.transport)
	w, err := s.source.Watch(ctx, q)
	if err != nil {
		log.End(err)
		return nil, err
	}
	return log.Watch(w), nil
}

// Trace returns hooks that record the streams below the session that was opened last.
func (w *Witness) Trace() *client.Trace {
	return &client.Trace{
		Opened: func(transport string, from listwatch.Version) { w.current().stream(transport, from) },
		Lost:   func(err error, _ time.Duration) { w.current().lost(err) },
	}
}

// A SessionLog records one session. It is safe for concurrent use; events must come in their order.
type SessionLog struct {
	recorder *Recorder

	mu      sync.Mutex
	session Session // guarded by mu
}

func (s *SessionLog) copy() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.session
	c.Frames, c.Streams = slices.Clone(c.Frames), slices.Clone(c.Streams)
	return &c
}

// Ready records that the request was answered: the watch has begun.
func (s *SessionLog) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Ready = s.recorder.Now()
}

// Event records an event.
func (s *SessionLog) Event(e listwatch.Event) {
	f := Frame{Type: Type(e.Type), Key: Key(e.Object.Key), Version: e.Version, Initial: e.Initial}
	if f.Type == Bookmark || f.Type == Synced {
		f.Key = Key{}
	} else {
		f.Payload = s.recorder.sum(e.Object.Data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.At = s.recorder.Now()
	s.session.Frames = append(s.session.Frames, f)
}

// End records how the session ended; nil: its watcher had enough of it. The first end counts.
func (s *SessionLog) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.End.At != 0 {
		return
	}
	s.session.End.At = s.recorder.Now()
	if err != nil {
		s.session.End = endOf(s.session.End.At, err)
	}
	if n := len(s.session.Streams); n > 0 && s.session.Streams[n-1].Lost == 0 && err != nil {
		s.session.Streams[n-1].Lost, s.session.Streams[n-1].Why = s.session.End.At, s.session.End.Why
	}
}

func (s *SessionLog) stream(transport string, from listwatch.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Streams = append(s.session.Streams, Stream{Transport: transport, From: from, Opened: s.recorder.Now()})
}

// lost ends the stream that is open; an attempt to open another one may have failed, too, which ends nothing.
func (s *SessionLog) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.session.Streams)
	if n == 0 || s.session.Streams[n-1].Lost != 0 {
		return
	}
	end := endOf(s.recorder.Now(), err)
	s.session.Streams[n-1].Lost, s.session.Streams[n-1].Why = end.At, end.Why
}

// Watch returns w, whose events and end are recorded as they are read. It also says Ready.
func (s *SessionLog) Watch(w listwatch.Watcher) listwatch.Watcher {
	s.Ready()
	return &watched{w, s}
}

type watched struct {
	listwatch.Watcher
	log *SessionLog
}

func (w *watched) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	for _, e := range dst[:n] {
		w.log.Event(e)
	}
	if err != nil && ctx.Err() == nil {
		w.log.End(err)
	}
	return n, err
}

func (w *watched) Close() error {
	w.log.End(nil)
	return w.Watcher.Close()
}

// Receive returns r, whose frames and end are recorded as they are read. An ERROR frame ends the session. It also says Ready.
func (s *SessionLog) Receive(r transport.Receiver) transport.Receiver {
	s.Ready()
	return &received{r, s}
}

type received struct {
	transport.Receiver
	log *SessionLog
}

func (r *received) Receive() (framing.WatchEvent, error) {
	frame, err := r.Receiver.Receive()
	if err != nil {
		r.log.End(err)
		return frame, err
	}
	e, err := frame.Event()
	if err != nil {
		r.log.End(err)
		return frame, nil
	}
	r.log.Event(e)
	return frame, nil
}

func (r *received) Close() error {
	r.log.End(nil)
	return r.Receiver.Close()
}
