package watchserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchserver"
)

type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// A fixture is a watchserver over a store of flags, in memory.
type fixture struct {
	*testing.T
	*servertest.Server
	flags typed.Collection[Flag]
	// endpoint returns the endpoint of a request. If nil, the server serves all flags.
	endpoint func(*http.Request) watchserver.Endpoint
	// wrap returns middleware around the server. It may be nil.
	wrap func(http.Handler) http.Handler
}

// newFixture starts a server. configure may be nil. A test that depends on time must call
// newFixture in a synctest bubble, so that the server uses the bubble's clock.
func newFixture(t *testing.T, configure func(*watchserver.Server)) *fixture {
	t.Helper()
	f := &fixture{T: t, flags: memory.New[Flag]()}
	f.Server = servertest.Start(t, f.flags,
		servertest.Options{Configure: configure, Wrap: func(next http.Handler) http.Handler {
			serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if f.endpoint == nil {
					next.ServeHTTP(w, r)
					return
				}
				f.WatchServer.Serve(w, r, f.endpoint(r))
			})
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if f.wrap == nil {
					serve(w, r)
					return
				}
				f.wrap(serve).ServeHTTP(w, r)
			})
		}})
	return f
}

// onEachTransport runs test for each transport, each in a separate synctest bubble.
func onEachTransport(t *testing.T, configure func(*watchserver.Server), test func(f *fixture, c transport.Client)) {
	for _, name := range servertest.TransportNames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, configure)
				test(f, f.Client(name))
			})
		})
	}
}

// put creates a flag. If the flag exists, put inverts Enabled and replaces the labels.
func (f *fixture) put(name string, labels map[string]string) *Flag {
	f.Helper()
	flag, err := f.flags.Create(f.Context(), Flag{Metadata: listwatch.Metadata{Name: name, Labels: labels}})
	if errors.Is(err, listwatch.AlreadyExists) {
		flag, err = f.flags.Update(f.Context(), listwatch.Key{Name: name}, func(flag *Flag) error {
			flag.Enabled, flag.Labels = !flag.Enabled, labels
			return nil
		})
	}
	if err != nil {
		f.Fatal(err)
	}
	return &flag
}

// watch opens a watch with the parameters in query.
func (f *fixture) watch(c transport.Client, query string) *openWatch {
	f.Helper()
	return f.watchCompressed(c, query)
}

// watchCompressed opens a watch that accepts content codings.
func (f *fixture) watchCompressed(c transport.Client, query string, codings ...string) *openWatch {
	f.Helper()
	w, err := f.tryWatch(c, query, codings...)
	if err != nil {
		f.Fatalf("%s: watch %q: %v", c.Name(), query, err)
	}
	f.Cleanup(func() { w.Close() })
	return w
}

func (f *fixture) tryWatch(c transport.Client, query string, codings ...string) (*openWatch, error) {
	r, err := c.Dial(context.Background(), &transport.Request{URL: f.WatchURL("/flags", query), Codings: codings})
	if err != nil {
		return nil, err
	}
	return &openWatch{f, c.Name(), r}, nil
}

// An openWatch is the client's end of a watch.
type openWatch struct {
	*fixture
	transport string
	transport.Receiver
}

// want reads events, compares them with lines such as "ADDED a", and returns their versions.
func (w *openWatch) want(lines ...string) (versions []listwatch.Version) {
	w.Helper()
	for _, line := range lines {
		received, err := w.Receive()
		if err != nil {
			w.Fatalf("%s: got %v, want %s", w.transport, err, line)
		}
		e, err := received.Event()
		if err != nil {
			w.Fatalf("%s: got %s event (%v), want %s", w.transport, received.Type, err, line)
		}
		if got := strings.TrimSpace(e.Type.String() + " " + e.Object.Key.Name); got != line {
			w.Fatalf("%s: got %q, want %q", w.transport, got, line)
		}
		versions = append(versions, e.Version)
	}
	return versions
}

// wantError reads an ERROR event with the given code, and the clean end that must follow.
func (w *openWatch) wantError(code listwatch.Code) *listwatch.Error {
	w.Helper()
	received, err := w.Receive()
	if err != nil {
		w.Fatalf("%s: got %v, want an ERROR event", w.transport, err)
	}
	if _, err = received.Event(); !errors.Is(err, code) || !listwatch.AsError(err).Remote {
		w.Fatalf("%s: got %s event (%v), want ERROR with code %v", w.transport, received.Type, err, code)
	}
	w.wantEnd()
	return listwatch.AsError(err)
}

// wantEnd reads the clean end of the watch.
func (w *openWatch) wantEnd() {
	w.Helper()
	if received, err := w.Receive(); err != io.EOF {
		w.Fatalf("%s: got %s %s, %v; want a clean end", w.transport, received.Type, received.Object, err)
	}
}
