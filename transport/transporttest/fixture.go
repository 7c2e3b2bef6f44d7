package transporttest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A fixture has a server, which the first dial starts, and a client for it.
type fixture struct {
	*testing.T
	pair        Pair
	compression string // the compression that dial requests; empty for none
	config      ServerConfig

	limit int // the maximum size of an event; zero for the default

	server *TestServer
	client transport.Client
}

// codings returns the content codings to request. If a transport has a compression of its own, any
// requested coding enables that compression.
func (f *fixture) codings() []string {
	switch {
	case f.compression == "":
		return nil
	case slices.Contains(transport.Codings(), f.compression):
		return []string{f.compression}
	}
	return transport.Codings()
}

func (f *fixture) open() {
	f.Helper()
	if f.server != nil {
		return
	}
	if configure := f.pair.Configure; configure != nil {
		inner := f.config.Configure
		f.config.Configure = func(srv *http.Server) {
			if inner != nil {
				inner(srv)
			}
			configure(srv, f.config.Options)
		}
	}
	if f.config.Options.Framings == nil {
		f.config.Options.Framings = f.offer()
	}
	f.server = StartServer(f, f.config)
	f.client = f.pair.Client(f.server.Network)
	f.Cleanup(func() {
		if c, ok := f.client.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	})
}

// offer returns the default framings and the framings of the pair.
func (f *fixture) offer() *framing.Registry {
	f.Helper()
	framers := framing.Default().Framers()
	for _, framer := range f.pair.Framings {
		if !slices.Contains(framers, framer) {
			framers = append(framers, framer)
		}
	}
	offer, err := framing.NewRegistry(framers...)
	if err != nil {
		f.Fatal(err)
	}
	return offer
}

// dial opens a stream and returns both of its ends.
func (f *fixture) dial(ctx context.Context, framings ...framing.Framer) (*Stream, transport.Receiver) {
	f.Helper()
	f.open()
	r, err := f.client.Dial(ctx, &transport.Request{
		URL: f.server.URL, Framings: framings, Codings: f.codings(), Limit: f.limit,
	})
	if err != nil {
		f.Fatalf("dial: %v", err)
	}
	f.Cleanup(func() { r.Close() })
	return <-f.server.Streams, r
}

func (f *fixture) encodeEvents(s *Stream, events ...listwatch.Event) [][]byte {
	f.Helper()
	frames, err := Frames(s.Encoder, events...)
	if err != nil {
		f.Fatal(err)
	}
	return frames
}

func (f *fixture) send(s *Stream, events ...listwatch.Event) {
	f.Helper()
	if err := s.Sender.Send(f.encodeEvents(s, events...)); err != nil {
		f.Errorf("send: %v", err)
	}
}

func (f *fixture) want(r transport.Receiver, events ...listwatch.Event) {
	f.Helper()
	for _, e := range events {
		got, err := r.Receive()
		if err != nil {
			f.Fatalf("event %d: %v", e.Version, err)
		}
		if got.Type != e.Type.String() || !bytes.Equal(got.Object, e.Object.Data) {
			f.Fatalf("event %d: got %s %.80q of %d bytes, want %s %.80q of %d", e.Version,
				got.Type, got.Object, len(got.Object), e.Type, e.Object.Data, len(e.Object.Data))
		}
	}
}
