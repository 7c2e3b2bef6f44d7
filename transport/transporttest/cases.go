package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// Event returns an event of version n whose object has about size bytes.
func Event(n, size int) listwatch.Event {
	const format = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"t%d","resourceVersion":"%d"},"text":"%s"}`
	o := fmt.Appendf(nil, format, n, n, strings.Repeat("é", max(0, size-90)/2))
	return listwatch.Event{Type: listwatch.Added, Object: &listwatch.Object{Data: o}, Version: listwatch.Version(n)}
}

// Frames returns the frames of events.
func Frames(c transport.Encoder, events ...listwatch.Event) ([][]byte, error) {
	frames := make([][]byte, len(events))
	for i, e := range events {
		var err error
		if frames[i], err = c.Frame(framing.FromEvent(e)); err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// wantConnectionError checks that Receive returns the error of a failed connection, and repeats
// it at the next call.
func (f *fixture) wantConnectionError(r transport.Receiver, withinEvent bool) {
	f.Helper()
	for range 2 {
		_, err := r.Receive()
		if listwatch.CodeOf(err) != listwatch.Unavailable || errors.Is(err, io.EOF) {
			f.Fatalf("got %v, want code %v", err, listwatch.Unavailable)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) != withinEvent {
			f.Errorf("got %v; want within an event: %v", err, withinEvent)
		}
	}
}

func testEvents(f *fixture) {
	for i, framer := range f.pair.Framings {
		s, r := f.dial(f.Context(), framer)
		var batch []listwatch.Event
		count := 300
		if f.compression != "" || f.config.Sockets {
			count = 100 // the race detector makes compression and sockets slow
		}
		for i := range count {
			batch = append(batch, Event(i+1, 100+i))
		}
		largest := 512 << 10
		if i > 0 {
			// The large events of one framing suffice to exceed the windows of flow control.
			largest = 128 << 10
		}
		large := []listwatch.Event{Event(2001, largest), Event(2002, 100), Event(2003, 100<<10), Event(2004, 64<<10)}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			f.send(s, batch[0])
			f.send(s)
			f.send(s, batch[1:]...)
			f.send(s, large[0])
			f.send(s, large[1:]...)
		}()
		f.want(r, batch...)
		f.want(r, large...)
		<-sent
		s.Sender.Close(transport.Finished)
		if _, err := r.Receive(); err != io.EOF {
			f.Errorf("%s: got %v, want %v", framer.MediaType(), err, io.EOF)
		}
	}
}

func testHeaders(f *fixture) {
	f.config.Handler = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Middleware", "was here")
			w.Header().Set("X-Split", "a\r\nX-Evil: yes")
			next.ServeHTTP(w, r)
		})
	}
	// Dial must return before the server sends an event.
	_, r := f.dial(f.Context())
	want := map[string]string{"X-Middleware": "was here", "X-Evil": ""}
	if f.pair.Server.Name() != "websocket" {
		want["Content-Type"] = "application/json"
		want["Cache-Control"] = "no-cache, private, no-transform"
		want["Incremental"] = "?1"
		want["X-Accel-Buffering"] = "no"
		want["Vary"] = "Accept"
		want["Content-Length"] = ""
	}
	for name, value := range want {
		if got := r.Header().Get(name); got != value {
			f.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}

func testFinished(f *fixture)  { f.cleanEnd(transport.Finished) }
func testGoingAway(f *fixture) { f.cleanEnd(transport.GoingAway) }

func (f *fixture) cleanEnd(end transport.End) {
	s, r := f.dial(f.Context())
	f.send(s, Event(1, 1000))
	if err := s.Sender.Close(end); err != nil {
		f.Errorf("close: %v", err)
	}
	<-s.Done()
	f.want(r, Event(1, 1000))
	for range 2 {
		if _, err := r.Receive(); err != io.EOF {
			f.Errorf("got %v after a clean end, want %v", err, io.EOF)
		}
	}
}

func testAbort(f *fixture) {
	s, r := f.dial(f.Context())
	f.send(s, Event(1, 1000))
	f.want(r, Event(1, 1000))
	if err := s.Sender.Close(transport.Abort); err != nil {
		f.Errorf("close: %v", err)
	}
	<-s.Done()
	f.wantConnectionError(r, false)
}

func testAbortWithin(f *fixture) {
	if f.pair.CannotSplitFrames {
		f.Skip("this server cannot send half of an event")
	}
	s, r := f.dial(f.Context())
	f.send(s, Event(1, 1000))
	f.want(r, Event(1, 1000)) // net/http does not return data of an incomplete chunk
	frame := f.encodeEvents(s, Event(2, 1000))[0]
	if err := s.Sender.Send([][]byte{frame[:len(frame)/2]}); err != nil {
		f.Fatal(err)
	}
	// An abort may destroy data in transit, so wait until the reader has received half of the
	// event.
	read := make(chan error)
	go func() {
		_, err := r.Receive()
		read <- err
	}()
	f.settle()
	s.Sender.Close(transport.Abort)
	err := <-read
	if listwatch.CodeOf(err) != listwatch.Unavailable || !f.config.Sockets && !errors.Is(err, io.ErrUnexpectedEOF) {
		f.Errorf("got %v after an abort within an event", err)
	}
}

func testReset(f *fixture) {
	s, r := f.dial(f.Context())
	f.send(s, Event(1, 1000))
	f.want(r, Event(1, 1000))
	f.settle() // a polling client sees a reset only while it has a request in flight
	for _, c := range f.server.Conns() {
		c.Reset()
	}
	<-s.Done()
	if _, err := r.Receive(); listwatch.CodeOf(err) != listwatch.Unavailable {
		f.Errorf("got %v after a reset", err)
	}
	s.Sender.Close(transport.Abort)
}

func testReceiverClose(f *fixture) {
	s, r := f.dial(f.Context())
	read := make(chan error)
	go func() {
		_, err := r.Receive()
		read <- err
	}()
	f.settle()
	r.Close()
	r.Close()
	if err := <-read; err == nil {
		f.Error("the interrupted Receive returned an event")
	}
	<-s.Done()
	if err := s.Sender.Send(nil); err == nil {
		// A transport may detect the end only when it writes data.
		for err == nil {
			err = s.Sender.Send(f.encodeEvents(s, Event(1, 1000)))
		}
	}
	s.Sender.Close(transport.Abort)
}

func testContext(f *fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	s, r := f.dial(ctx)
	cancel()
	<-s.Done()
	if _, err := r.Receive(); !errors.Is(err, context.Canceled) {
		f.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := f.client.Dial(ctx, &transport.Request{URL: f.server.URL}); !errors.Is(err, context.Canceled) {
		f.Errorf("dial: %v, want %v", err, context.Canceled)
	}
	s.Sender.Close(transport.Abort)
}

func testSenderClosed(f *fixture) {
	s, _ := f.dial(f.Context())
	frames := f.encodeEvents(s, Event(1, 1000))
	for range 2 {
		if err := s.Sender.Close(transport.Finished); err != nil {
			f.Errorf("close: %v", err)
		}
	}
	<-s.Done()
	if err := s.Sender.Send(frames); listwatch.CodeOf(err) != listwatch.Unavailable {
		f.Errorf("send after close: %v, want code %v", err, listwatch.Unavailable)
	}
}

func testRejected(f *fixture) {
	offer, err := framing.NewRegistry(framing.JSON{})
	if err != nil {
		f.Fatal(err)
	}
	f.config.Options.Framings = offer
	f.open()
	framings := []framing.Framer{framing.LengthPrefixed{}}
	_, err = f.client.Dial(f.Context(), &transport.Request{URL: f.server.URL, Framings: framings})
	if listwatch.CodeOf(err) != listwatch.Unsupported {
		f.Errorf("got %v, want code %v", err, listwatch.Unsupported)
	}
}

func testMany(f *fixture) {
	streams, events := 50, 20
	if f.compression != "" {
		streams, events = 20, 5 // the race detector makes compression slow
	}
	batch := make([]listwatch.Event, events)
	for i := range batch {
		batch[i] = Event(i+1, 1000)
	}
	var wg sync.WaitGroup
	for range streams {
		s, r := f.dial(f.Context())
		wg.Go(func() {
			for _, want := range batch {
				f.send(s, want)
			}
			s.Sender.Close(transport.Finished)
		})
		wg.Go(func() {
			for _, want := range batch {
				if e, err := r.Receive(); err != nil || !bytes.Equal(e.Object, want.Object.Data) {
					f.Errorf("event %d: %.80q, %v", want.Version, e.Object, err)
					return
				}
			}
			if _, err := r.Receive(); err != io.EOF {
				f.Errorf("got %v, want %v", err, io.EOF)
			}
		})
	}
	wg.Wait()
}

// settle waits until all goroutines are blocked. Over sockets it does nothing.
func (f *fixture) settle() {
	if !f.config.Sockets {
		time.Sleep(time.Millisecond) // fake time advances when all goroutines are blocked
	}
}
