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
type WatcherRecorder struct {
	// Immutable after construction.
	recorder *Recorder
	name     string

	mu      sync.Mutex
	session *SessionRecorder // guarded by mu; the one opened last
}

// Witness returns one for the watcher of that name, which no other has.
func (r *Recorder) Watcher(name string) *WatcherRecorder {
	return &WatcherRecorder{recorder: r, name: name}
}

// Open records that the watcher asks for q. Call it before the request, and end the session whatever comes of it.
func (w *WatcherRecorder) OpenSession(q listwatch.Query, transport string) *SessionRecorder {
	r := w.recorder
	s := &SessionRecorder{recorder: r, session: Session{Watcher: w.name, Request: RequestOf(q), Transport: transport, Opened: r.Elapsed()}}
	w.mu.Lock()
	w.session = s
	w.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = append(r.sessions, s)
	return s
}

func (w *WatcherRecorder) current() *SessionRecorder {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// Source returns src, recorded: what is listed and watched through it is taken down. It is for one goroutine.
func (w *WatcherRecorder) Source(src listwatch.Source, transport string) listwatch.Source {
	return &witnessed{w, src, transport}
}

type witnessed struct {
	witness   *WatcherRecorder
	source    listwatch.Source
	transport string
}

func (s *witnessed) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	began := s.witness.recorder.Elapsed()
	page, err := s.source.List(ctx, q)
	if err == nil && q.Continue == "" {
		s.witness.recorder.RecordList(s.witness.name, began, q, page)
	}
	return page, err
}

func (s *witnessed) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	log := s.witness.OpenSession(q, s.transport)
	w, err := s.source.Watch(ctx, q)
	if err != nil {
		log.End(err)
		return nil, err
	}
	return log.Watcher(w), nil
}

// Trace returns hooks that record the streams below the session that was opened last.
func (w *WatcherRecorder) Trace() *client.Trace {
	return &client.Trace{
		Opened: func(transport string, from listwatch.Version) { w.current().stream(transport, from) },
		Lost:   func(err error, _ time.Duration) { w.current().lost(err) },
	}
}

// A SessionLog records one session. It is safe for concurrent use; events must come in their order.
type SessionRecorder struct {
	recorder *Recorder

	mu      sync.Mutex
	session Session // guarded by mu
}

func (s *SessionRecorder) copy() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.session
	c.Events, c.Connections = slices.Clone(c.Events), slices.Clone(c.Connections)
	return &c
}

// Ready records that the request was answered: the watch has begun.
func (s *SessionRecorder) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Ready = s.recorder.Elapsed()
}

// Event records an event.
func (s *SessionRecorder) Event(e listwatch.Event) {
	f := ReceivedEvent{Type: EventType(e.Type), Key: Key(e.Object.Key), Version: e.Version, Initial: e.Initial}
	if f.Type == Bookmark || f.Type == Synced {
		f.Key = Key{}
	} else {
		f.Fingerprint = s.recorder.sum(e.Object.Data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.ReceivedAt = s.recorder.Elapsed()
	s.session.Events = append(s.session.Events, f)
}

// End records how the session ended; nil: its watcher had enough of it. The first end counts.
func (s *SessionRecorder) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.End.At != 0 {
		return
	}
	s.session.End.At = s.recorder.Elapsed()
	if err != nil {
		s.session.End = endOf(s.session.End.At, err)
	}
	if n := len(s.session.Connections); n > 0 && s.session.Connections[n-1].Lost == 0 && err != nil {
		s.session.Connections[n-1].Lost, s.session.Connections[n-1].Error = s.session.End.At, s.session.End.Error
	}
}

func (s *SessionRecorder) stream(transport string, from listwatch.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Connections = append(s.session.Connections, Connection{Transport: transport, From: from, Opened: s.recorder.Elapsed()})
}

// lost ends the stream that is open; an attempt to open another one may have failed, too, which ends nothing.
func (s *SessionRecorder) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.session.Connections)
	if n == 0 || s.session.Connections[n-1].Lost != 0 {
		return
	}
	end := endOf(s.recorder.Elapsed(), err)
	s.session.Connections[n-1].Lost, s.session.Connections[n-1].Error = end.At, end.Error
}

// Watch returns w, whose events and end are recorded as they are read. It also says Ready.
func (s *SessionRecorder) Watcher(w listwatch.Watcher) listwatch.Watcher {
	s.Ready()
	return &watched{w, s}
}

type watched struct {
	listwatch.Watcher
	log *SessionRecorder
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
func (s *SessionRecorder) Receiver(r transport.Receiver) transport.Receiver {
	s.Ready()
	return &received{r, s}
}

type received struct {
	transport.Receiver
	log *SessionRecorder
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
