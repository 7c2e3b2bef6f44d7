package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A stream is a watch as a client of this module reads it.
type stream struct {
	*env
	transport.Receiver
}

// dial opens a watch; query is what comes beside watch=1.
func (e *env) dial(query string) *stream {
	e.Helper()
	return e.dialAs(query, transport.Request{})
}

// dialAs is dial with a request that has more than a URL.
func (e *env) dialAs(query string, r transport.Request) *stream {
	e.Helper()
	s, err := e.tryDial(query, r)
	if err != nil {
		e.Fatalf("watch %q: %v", query, err)
	}
	return s
}

func (e *env) tryDial(query string, r transport.Request) (*stream, error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.patience())
	r.URL, r.Header = e.watched("watch=1&"+query), e.withHeader(r.Header)
	receiver, err := e.client.Dial(ctx, &r)
	if err != nil {
		cancel()
		return nil, err
	}
	e.Cleanup(func() {
		receiver.Close()
		cancel()
	})
	return &stream{e, receiver}, nil
}

// withHeader returns h and what goes with every request.
func (s *Instance) withHeader(h http.Header) http.Header {
	if s.Header == nil {
		return h
	}
	all := s.Header.Clone()
	maps.Copy(all, h)
	return all
}

// Receive is that of the Receiver, and tells the timeline what came.
func (s *stream) Receive() (framing.WatchEvent, error) {
	w, err := s.Receiver.Receive()
	s.log.note(func() string { return s.received(w, err) })
	return w, err
}

// received puts into words what came.
func (s *Instance) received(w framing.WatchEvent, err error) string {
	if err != nil {
		return fmt.Sprintf("the watch ended: %v", err)
	}
	if e, err := w.Event(); err == nil {
		return fmt.Sprintf("received %s at version %d", line(s.atHome(e)), e.Version)
	}
	return fmt.Sprintf("received %s %.200s", w.Type, w.Object)
}

// next returns the next event.
func (s *stream) next() listwatch.Event {
	s.Helper()
	return s.expect("an event")
}

// expect is next; what says what must come.
func (s *stream) expect(what string) listwatch.Event {
	s.Helper()
	w, err := s.Receive()
	if errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("got nothing within %v, want %s", s.patience(), what)
	}
	if err != nil {
		s.Fatalf("got %v, want %s", err, what)
	}
	e, err := w.Event()
	if err != nil {
		s.Fatalf("got %s %s: %v, want %s", w.Type, w.Object, err, what)
	}
	return s.atHome(e)
}

// line spells e shortly: "ADDED name".
func line(e listwatch.Event) string {
	name := e.Object.Key.Name
	if e.Object.Key.Namespace != namespace {
		name = strings.Trim(e.Object.Key.String(), "/")
	}
	return strings.TrimSpace(e.Type.String() + " " + name)
}

// want reads events and holds them against lines such as "ADDED a".
func (s *stream) want(lines ...string) []listwatch.Event {
	s.Helper()
	var events []listwatch.Event
	for _, want := range lines {
		e := s.expect(fmt.Sprintf("%q", want))
		if got := line(e); got != want {
			s.Fatalf("got %q at %d, want %q", got, e.Version, want)
		}
		events = append(events, e)
	}
	return events
}

// until reads up to the event of a sentinel and returns what came before it.
func (s *stream) until(sentinel string) (before []listwatch.Event) {
	s.Helper()
	for {
		e := s.next()
		if e.Object.Key.Name == sentinel {
			return before
		}
		before = append(before, e)
	}
}

// wantError reads the ERROR event that must come now, and the clean end behind it.
func (s *stream) wantError(code listwatch.Code) *listwatch.Error {
	s.Helper()
	w, err := s.Receive()
	if err != nil {
		s.Fatalf("got %v, want an ERROR event", err)
	}
	_, err = w.Event()
	if e := listwatch.AsError(err); w.Type != framing.TypeError || !errors.Is(err, code) || !e.Remote {
		s.Fatalf("got %s %s (%v), want an ERROR of code %v", w.Type, w.Object, err, code)
	}
	s.wantEnd()
	return listwatch.AsError(err)
}

func (s *stream) wantEnd() {
	s.Helper()
	if w, err := s.Receive(); err != io.EOF {
		s.Fatalf("got %s %s, %v; want a clean end", w.Type, w.Object, err)
	}
}

// versions returns those of events.
func versions(events []listwatch.Event) []listwatch.Version {
	all := make([]listwatch.Version, len(events))
	for i, e := range events {
		all[i] = e.Version
	}
	return all
}
