package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Watch is a watch that the case reads with this module's transport client. In real time,
// each call of Receive may take up to Env.Patience. In fake time, all calls together may
// take that long.
type Watch struct {
	*Env
	transport.Receiver
	timeout *timeout
}

// A timeout cancels a context if a wait takes too long.
type timeout struct {
	timer   *time.Timer
	expired atomic.Bool
}

func newTimeout(after time.Duration, cancel context.CancelFunc) *timeout {
	t := new(timeout)
	t.timer = time.AfterFunc(after, func() {
		t.expired.Store(true)
		cancel()
	})
	return t
}

// Dial opens a watch. query holds the parameters other than watch=1.
func (e *Env) Dial(query string) *Watch {
	e.Helper()
	return e.DialRequest(query, transport.Request{})
}

// DialRequest is like Dial with further request options.
func (e *Env) DialRequest(query string, r transport.Request) *Watch {
	e.Helper()
	s, err := e.TryDial(query, r)
	if refused := listwatch.AsError(err); errors.Is(err, listwatch.Expired) && refused.Status == http.StatusGone {
		e.Fatalf("watch %q: got status 410 (%v); an expired version gets status 200 and one ERROR event with code 410",
			query, err)
	}
	if err != nil {
		e.Fatalf("watch %q: %v", query, err)
	}
	return s
}

// TryDial is like DialRequest but returns the error, so that any goroutine may call it.
func (e *Env) TryDial(query string, r transport.Request) (*Watch, error) {
	ctx, cancel := context.WithCancel(context.Background())
	t := newTimeout(e.Patience(), cancel)
	r.URL, r.Header = e.WatchURL("watch=1&"+query), e.WithHeader(r.Header)
	receiver, err := e.Client.Dial(ctx, &r)
	if err != nil || !e.Setup.FakeTime {
		t.timer.Stop()
	}
	if err != nil {
		cancel()
		return nil, t.explain(err)
	}
	e.Cleanup(func() {
		t.timer.Stop()
		receiver.Close()
		cancel()
	})
	return &Watch{e, receiver, t}, nil
}

// explain returns DeadlineExceeded in place of an error that the timeout has caused.
func (t *timeout) explain(err error) error {
	if err != nil && t.expired.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// maxKeptObject is the size in bytes of the largest object that the timeline keeps to describe it
// later. Cases that measure the heap use larger objects.
const maxKeptObject = 4 << 10

// Receive calls Receiver.Receive and records the result in the timeline.
func (w *Watch) Receive() (framing.WatchEvent, error) {
	if !w.Setup.FakeTime {
		// Limit each call, not all calls together, because a slow machine may need long for all
		// events.
		w.timeout.timer.Reset(w.Patience())
		defer w.timeout.timer.Stop()
	}
	event, err := w.Receiver.Receive()
	err = w.timeout.explain(err)
	text := func() string { return w.describeReceived(event, err) }
	if len(event.Object) > maxKeptObject {
		described := text()
		text = func() string { return described }
	}
	w.Timeline.note(text)
	return event, err
}

// describeReceived returns the result of Receive as text for the timeline.
func (i *Instance) describeReceived(w framing.WatchEvent, err error) string {
	if err != nil {
		return "the watch ended: " + GotError(err)
	}
	if e, err := w.Event(); err == nil {
		return fmt.Sprintf("received %s at version %d", EventLine(i.InCaseNamespace(e)), e.Version)
	}
	return fmt.Sprintf("received %s %.200s", w.Type, w.Object)
}

// Next returns the next event.
func (w *Watch) Next() listwatch.Event {
	w.Helper()
	return w.expect("an event")
}

// expect returns the next event. what describes the expected event in failure messages.
func (w *Watch) expect(what string) listwatch.Event {
	w.Helper()
	event, err := w.Receive()
	if errors.Is(err, context.DeadlineExceeded) {
		w.Fatalf("got no event within %v, want %s", w.Patience(), what)
	}
	if err != nil {
		w.Fatalf("got %s, want %s", GotError(err), what)
	}
	e, err := event.Event()
	if err != nil {
		w.Fatalf("got %s %s: %v, want %s", event.Type, event.Object, err, what)
	}
	return w.InCaseNamespace(e)
}

// EventLine returns a short form of e, such as "ADDED name".
func EventLine(e listwatch.Event) string {
	name := e.Object.Key.Name
	if e.Object.Key.Namespace != DefaultNamespace {
		name = strings.Trim(e.Object.Key.String(), "/")
	}
	return strings.TrimSpace(e.Type.String() + " " + name)
}

// Want reads events and compares them with lines such as "ADDED a".
func (w *Watch) Want(lines ...string) []listwatch.Event {
	w.Helper()
	var events []listwatch.Event
	for _, want := range lines {
		e := w.expect(fmt.Sprintf("%q", want))
		if got := EventLine(e); got != want {
			w.Fatalf("got %q at version %d, want %q", got, e.Version, want)
		}
		events = append(events, e)
	}
	return events
}

// ReadUntil reads up to the first event of the object whose name is sentinel, and returns the
// events before it.
func (w *Watch) ReadUntil(sentinel string) (before []listwatch.Event) {
	w.Helper()
	for {
		e := w.Next()
		if e.Object.Key.Name == sentinel {
			return before
		}
		before = append(before, e)
	}
}

// WantError reads an ERROR event of the given code and the clean end of the stream after
// it.
func (w *Watch) WantError(code listwatch.Code) *listwatch.Error {
	w.Helper()
	event, err := w.Receive()
	if err != nil {
		w.Fatalf("got %s, want an ERROR event of code %v", GotError(err), code)
	}
	_, err = event.Event()
	if e := listwatch.AsError(err); event.Type != framing.TypeError || !errors.Is(err, code) || !e.Remote {
		w.Fatalf("got %s %s (%v), want an ERROR of code %v", event.Type, event.Object, err, code)
	}
	w.WantEnd()
	return listwatch.AsError(err)
}

// WantEnd reads the clean end of the stream.
func (w *Watch) WantEnd() {
	w.Helper()
	if event, err := w.Receive(); err != io.EOF {
		w.Fatalf("got %s, want a clean end", GotRaw(event, err))
	}
}

// Versions returns the versions of events.
func Versions(events []listwatch.Event) []listwatch.Version {
	all := make([]listwatch.Version, len(events))
	for i, e := range events {
		all[i] = e.Version
	}
	return all
}

// ReadBookmark reads up to the next bookmark. It returns the bookmark and the events before
// it.
func (w *Watch) ReadBookmark() (before []listwatch.Event, b listwatch.Event) {
	w.Helper()
	for {
		e := w.Next()
		if e.Type == listwatch.Bookmark || e.Type == listwatch.Synced {
			return before, e
		}
		before = append(before, e)
	}
}

// ReceiveEvent is like Next but returns the error, so that any goroutine may call it.
func (w *Watch) ReceiveEvent() (listwatch.Event, error) {
	event, err := w.Receive()
	if err != nil {
		return listwatch.Event{}, fmt.Errorf("got %w, want an event", err)
	}
	ev, err := event.Event()
	if err != nil {
		return ev, err
	}
	return w.InCaseNamespace(ev), nil
}

// ReadThrough reads events up to version last and returns all of them. Any goroutine may
// call it.
func (w *Watch) ReadThrough(last listwatch.Version) (all []SeenEvent, err error) {
	for {
		e, err := w.ReceiveEvent()
		if err != nil {
			return all, fmt.Errorf("after %d events: %w", len(all), err)
		}
		all = append(all, SeenEvent{EventLine(e), e.Version})
		if e.Version >= last {
			return all, nil
		}
	}
}

// DialIn is like Dial with a given framing.
func (e *Env) DialIn(f framing.Framer, query string) *Watch {
	e.Helper()
	return e.DialRequest(query, transport.Request{Framings: []framing.Framer{f}})
}

// TryDialIn is like DialIn but returns the error, so that any goroutine may call it. If the client
// under test does not support f, the error is a [MissingAbility]: a case with several framings then
// continues with the next one.
func (e *Env) TryDialIn(f framing.Framer, query string) (*Watch, error) {
	if skipper, ok := e.Client.(*unsupportedSkipper); ok {
		e = e.WithRoute(&Route{e.Instance, skipper.Client})
	}
	return e.TryDial(query, transport.Request{Framings: []framing.Framer{f}})
}
