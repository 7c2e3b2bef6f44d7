package transporttest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

const writeTimeout = 5 * time.Second

// alertTimeout is the time for which crypto/tls tries to send an alert when it closes a connection.
// With net/http, a write that fails may return only after this time.
const alertTimeout = 5 * time.Second

// fill sends until Send fails. It returns the duration of the last Send and its error.
func (f *fixture) fill(s *Stream) (time.Duration, error) {
	frames := f.encodeEvents(s, compressibleEvent(1, 16<<10), compressibleEvent(2, 16<<10))
	for {
		start := time.Now()
		if err := s.Sender.Send(slices.Clone(frames)); err != nil {
			return time.Since(start), err
		}
	}
}

func testStalledReader(f *fixture) {
	f.config.Options.WriteTimeout = writeTimeout
	stalled, stalledReader := f.dial(f.Context())
	healthy, reader := f.dial(f.Context())
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		took, err := f.fill(stalled)
		if listwatch.CodeOf(err) != listwatch.Unavailable || !errors.Is(err, os.ErrDeadlineExceeded) {
			f.Errorf("stalled stream: got %v, want code %v and %v", err, listwatch.Unavailable, os.ErrDeadlineExceeded)
		}
		if took < writeTimeout || took > 3*writeTimeout {
			f.Errorf("the stalled Send failed after %v, want %v to %v", took, writeTimeout, 3*writeTimeout)
		}
		<-stalled.Done()
		stalled.Sender.Close(transport.Abort)
	}()
	for i := range 20 {
		e := Event(i+1, 1000)
		start := time.Now()
		f.send(healthy, e)
		f.want(reader, e)
		if d := time.Since(start); d > 0 {
			f.Errorf("the healthy stream waited %v", d)
		}
		time.Sleep(time.Second)
	}
	<-filled
	for {
		if _, err := stalledReader.Receive(); err != nil {
			if errors.Is(err, io.EOF) {
				f.Errorf("the stalled client received a clean end")
			}
			return
		}
	}
}

// stall opens a stream whose Send is blocked because the client does not read. The error of Send
// is sent on the channel.
func (f *fixture) stall() (*Stream, <-chan error) {
	f.Helper()
	s, _ := f.dial(f.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.fill(s)
		done <- err
	}()
	time.Sleep(time.Second)
	return s, done
}

func testAbortStalled(f *fixture) {
	s, done := f.stall()
	start := time.Now()
	s.Sender.Close(transport.Abort)
	if err := <-done; err == nil || time.Since(start) > alertTimeout {
		f.Errorf("Send returned %v after %v", err, time.Since(start))
	}
	<-s.Done()
}

func testFinishStalled(f *fixture) {
	f.config.Options.WriteTimeout = writeTimeout
	s, done := f.stall()
	start := time.Now()
	s.Sender.Close(transport.Finished)
	if d := time.Since(start); d > 2*writeTimeout {
		f.Errorf("Close took %v", d)
	}
	<-done
	<-s.Done()
}

func testVanished(f *fixture) {
	f.config.Options.WriteTimeout = writeTimeout
	s, _ := f.dial(f.Context())
	for _, c := range f.server.Conns() {
		c.Stall(true)
	}
	if took, err := f.fill(s); took > 3*writeTimeout {
		f.Errorf("Send to a vanished peer returned %v after %v", err, took)
	}
	<-s.Done()
	s.Sender.Close(transport.Abort)
	for _, c := range f.server.Conns() {
		c.Reset()
	}
}

func testServerTimeouts(f *fixture) {
	f.config.Options.WriteTimeout = writeTimeout
	f.config.Options.PingInterval = -1 // the client does not read, so it would not respond
	f.config.Configure = func(srv *http.Server) {
		srv.ReadTimeout, srv.WriteTimeout = 3*time.Second, 3*time.Second
	}
	s, r := f.dial(f.Context())
	for i := range 5 {
		time.Sleep(time.Minute)
		f.send(s, Event(i+1, 1000))
		f.want(r, Event(i+1, 1000))
	}
	time.Sleep(time.Minute)
	s.Sender.Close(transport.Finished)
	if _, err := r.Receive(); err != io.EOF {
		f.Errorf("got %v, want %v", err, io.EOF)
	}
}
