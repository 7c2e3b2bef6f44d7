package transporttest

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

const writeTimeout = 5 * time.Second

// alertTimeout is how long crypto/tls tries to say goodbye; net/http lets a write that failed
// wait for it.
const alertTimeout = 5 * time.Second

// fill sends until it fails and returns the error and how long the last Send took.
func (f *fixture) fill(s *transport.Stream) (time.Duration, error) {
	frames := f.frames(s, anEvent(1, 16<<10), anEvent(2, 16<<10))
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
		if listwatch.CodeOf(err) != listwatch.Unavailable {
			f.Errorf("the stalled stream ends with %v, want code %v", err, listwatch.Unavailable)
		}
		if took < writeTimeout || took > 3*writeTimeout {
			f.Errorf("a stalled reader was cut off after %v, want %v to %v", took, writeTimeout, 3*writeTimeout)
		}
		<-stalled.Done
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
				f.Errorf("the client takes the cut for a clean end")
			}
			return
		}
	}
}

// stall opens a stream whose Send waits for a reader that doesn't read. What it ends with is sent
// on the channel.
func (f *fixture) stall() (*transport.Stream, <-chan error) {
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
		f.Errorf("the send ended with %v after %v", err, time.Since(start))
	}
	<-s.Done
}

func testFinishStalled(f *fixture) {
	f.config.Options.WriteTimeout = writeTimeout
	s, done := f.stall()
	start := time.Now()
	s.Sender.Close(transport.Finished)
	if d := time.Since(start); d > 2*writeTimeout {
		f.Errorf("close took %v", d)
	}
	<-done
	<-s.Done
}

func testVanished(f *fixture) {
	f.config.Options.WriteTimeout = writeTimeout
	s, _ := f.dial(f.Context())
	for _, c := range f.site.Conns() {
		c.Stall(true)
	}
	if took, err := f.fill(s); took > 3*writeTimeout {
		f.Errorf("the stream to a peer that vanished ends with %v after %v", err, took)
	}
	<-s.Done
	s.Sender.Close(transport.Abort)
	for _, c := range f.site.Conns() {
		c.Reset()
	}
}

func testServerTimeouts(f *fixture) {
	f.config.Options.WriteTimeout = writeTimeout
	f.config.Options.PingInterval = -1 // nobody reads, so nobody need answer
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
