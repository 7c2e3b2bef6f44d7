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

// A WatcherRecorder records the sessions of one watcher, which are checked together. Only one
// session may be open at a time.
type WatcherRecorder struct {
	// Immutable after construction.
	recorder *Recorder
	name     string

	mu      sync.Mutex
	session *SessionRecorder // the session opened last; guarded by mu
}

// Watcher returns a recorder for the watcher with the given name. Names must be unique.
func (r *Recorder) Watcher(name string) *WatcherRecorder {
	return &WatcherRecorder{recorder: r, name: name}
}

// OpenSession records that the watcher requests q. Call it before the request is sent, and
// call End on the result even if the request fails.
func (w *WatcherRecorder) OpenSession(q listwatch.Query, transport string) *SessionRecorder {
	r := w.recorder
	s := &SessionRecorder{
		recorder: r,
		session:  Session{Watcher: w.name, Request: RequestOf(q), Transport: transport, Opened: r.Elapsed()},
	}
	w.mu.Lock()
	w.session = s
	w.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = append(r.sessions, s)
	return s
}

func (w *WatcherRecorder) currentSession() *SessionRecorder {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// Source returns a source that records all lists and watches of src. It is not safe for
// concurrent use.
func (w *WatcherRecorder) Source(src listwatch.Source, transport string) listwatch.Source {
	return &recordedSource{w, src, transport}
}

type recordedSource struct {
	recorder  *WatcherRecorder
	source    listwatch.Source
	transport string
}

func (r *recordedSource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	began := r.recorder.recorder.Elapsed()
	page, err := r.source.List(ctx, q)
	if err == nil && q.Continue == "" {
		r.recorder.recorder.RecordList(r.recorder.name, began, q, page)
	}
	return page, err
}

func (r *recordedSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	log := r.recorder.OpenSession(q, r.transport)
	w, err := r.source.Watch(ctx, q)
	if err != nil {
		log.End(err)
		return nil, err
	}
	return log.Watcher(w), nil
}

// Trace returns hooks that record the connections of the current session.
func (w *WatcherRecorder) Trace() *client.Trace {
	return &client.Trace{
		Opened: func(transport string, from listwatch.Version) { w.currentSession().connectionOpened(transport, from) },
		Lost:   func(err error, _ time.Duration) { w.currentSession().connectionLost(err) },
	}
}

// A SessionRecorder records one session. It is safe for concurrent use. Events must be
// recorded in order.
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

// Ready records that the watch was accepted.
func (s *SessionRecorder) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Ready = s.recorder.Elapsed()
}

// Event records that the session has received e now.
func (s *SessionRecorder) Event(e listwatch.Event) {
	f := ReceivedEvent{Type: EventType(e.Type), Key: Key(e.Object.Key), Version: e.Version, Initial: e.Initial}
	if f.Type == Bookmark || f.Type == Synced {
		f.Key = Key{}
		f.Since, _ = e.Since()
	} else {
		f.Fingerprint = s.recorder.fingerprint(e.Object.Data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.ReceivedAt = s.recorder.Elapsed()
	s.session.Events = append(s.session.Events, f)
}

// End records the end of the session. A nil err means that the watcher closed it. Only the
// first call has an effect.
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

func (s *SessionRecorder) connectionOpened(transport string, from listwatch.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Connections = append(s.session.Connections,
		Connection{Transport: transport, From: from, Opened: s.recorder.Elapsed()})
}

// connectionLost ends the current connection. It does nothing if no connection is open,
// because clients report a failed dial as a lost connection, too.
func (s *SessionRecorder) connectionLost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.session.Connections)
	if n == 0 || s.session.Connections[n-1].Lost != 0 {
		return
	}
	end := endOf(s.recorder.Elapsed(), err)
	s.session.Connections[n-1].Lost, s.session.Connections[n-1].Error = end.At, end.Error
}

// Watcher calls Ready, and returns a watcher that reads from w and records its events and its
// end.
func (s *SessionRecorder) Watcher(w listwatch.Watcher) listwatch.Watcher {
	s.Ready()
	return &recordedWatcher{w, s}
}

type recordedWatcher struct {
	listwatch.Watcher
	session *SessionRecorder
}

func (r *recordedWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := r.Watcher.Next(ctx, dst)
	for _, e := range dst[:n] {
		r.session.Event(e)
	}
	if err != nil && ctx.Err() == nil {
		r.session.End(err)
	}
	return n, err
}

func (r *recordedWatcher) Close() error {
	r.session.End(nil)
	return r.Watcher.Close()
}

// Receiver calls Ready, and returns a receiver that reads from r and records its events and its
// end. An ERROR event ends the session.
func (s *SessionRecorder) Receiver(r transport.Receiver) transport.Receiver {
	s.Ready()
	return &recordedReceiver{r, s}
}

type recordedReceiver struct {
	transport.Receiver
	session *SessionRecorder
}

func (r *recordedReceiver) Receive() (framing.WatchEvent, error) {
	frame, err := r.Receiver.Receive()
	if err != nil {
		r.session.End(err)
		return frame, err
	}
	e, err := frame.Event()
	if err != nil {
		r.session.End(err)
		return frame, nil
	}
	r.session.Event(e)
	return frame, nil
}

func (r *recordedReceiver) Close() error {
	r.session.End(nil)
	return r.Receiver.Close()
}
