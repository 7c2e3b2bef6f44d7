package harness

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// Remote returns the client under test for the collection at s. The client tries the transport
// client of s first, and others as fallbacks.
func (e *Env) Remote(s *Route, others ...transport.Client) listwatch.Source {
	return e.RemoteWith(s, func(*client.Remote) {}, others...)
}

// RemoteTraced is like Remote with a trace.
func (e *Env) RemoteTraced(s *Route, trace *client.Trace, others ...transport.Client) listwatch.Source {
	return e.RemoteWith(s, func(r *client.Remote) { r.Trace = trace }, others...)
}

// RemoteWith is like Remote with a configuration function. In real time, the client retries without
// a backoff.
func (e *Env) RemoteWith(s *Route, configure func(*client.Remote), others ...transport.Client) listwatch.Source {
	r := &client.Remote{
		URL: s.WatchURL("").String(), Network: s.Network, Transports: append([]transport.Client{s.Client}, others...),
	}
	if !e.Setup.FakeTime {
		r.Backoff = listwatch.Backoff{Min: -1, Max: -1}
	}
	if s.Header != nil {
		r.Header = func(context.Context, bool) (http.Header, error) { return s.Header, nil }
	}
	configure(r)
	e.Cleanup(func() { r.Close() })
	if e.Target.Client == nil {
		return r
	}
	wrapped := e.Target.Client(r)
	if wrapped == nil {
		e.Skipf("%s has no client that resumes watches", e.Target.Name)
	}
	return wrapped
}

// RealIdleTimeout is the idle timeout of a client under test in real time.
const RealIdleTimeout = 2 * time.Second

// SetIdleTimeout returns a configuration for RemoteWith that sets the idle timeout in real time.
func SetIdleTimeout(e *Env) func(*client.Remote) {
	return func(r *client.Remote) {
		if !e.Setup.FakeTime {
			r.IdleTimeout = RealIdleTimeout
		}
	}
}

// Follow opens a watch of r that starts at a version.
func (e *Env) Follow(r listwatch.Source, version listwatch.Version) listwatch.Watcher {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	w, err := r.Watch(ctx, listwatch.Query{Start: listwatch.StartAt, Version: version})
	if missing, ok := errors.AsType[MissingAbility](err); ok {
		e.Skipf("%s", missing)
	}
	if err != nil {
		e.Fatalf("watch: %v", err)
	}
	e.Cleanup(func() { w.Close() })
	return w
}

// NextOf returns the next event of w.
func (e *Env) NextOf(w listwatch.Watcher) (listwatch.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	var one [1]listwatch.Event
	_, err := w.Next(ctx, one[:])
	return one[0], err
}

// Await returns the next value of c. The case fails if there is none in time. what names the value.
func (e *Env) Await(c <-chan string, what string) string {
	e.Helper()
	timeout := time.NewTimer(e.Patience())
	defer timeout.Stop()
	select {
	case v := <-c:
		return v
	case <-timeout.C:
		e.Fatalf("got nothing within %v, want %s", e.Patience(), what)
		return ""
	}
}
