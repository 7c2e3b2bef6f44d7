package transporttest

import (
	"context"
	"net/http"
	"path"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Pair is a server and a client of a transport.
type Pair struct {
	// Server is the server side.
	Server transport.Server
	// Client returns a new client that connects over n.
	Client func(n transport.Network) transport.Client
	// Configure changes the http.Server before it starts. It may be nil.
	Configure func(*http.Server, transport.Options)
	// Framings are the framings to test, which need not be registered elsewhere. If nil, only
	// JSON is tested.
	Framings []framing.Framer
	// Compressions are the names of the content codings, or of the extension, that Server supports.
	// Compressions may be nil.
	Compressions []string
	// CannotSplitFrames is true if Send treats each frame as a complete event, so that a test
	// cannot send half of an event.
	CannotSplitFrames bool
}

// Run tests the guarantees of package transport that the two ends of p provide together.
func Run(t *testing.T, p Pair) {
	t.Helper()
	if p.Framings == nil {
		p.Framings = []framing.Framer{framing.JSON{}}
	}
	tests := []struct {
		name string
		run  func(*fixture)
		// bubble is true if the test needs a synctest bubble, for fake time or a network in
		// memory.
		bubble bool
		// compressed is true if the test also runs with each of Compressions.
		compressed bool
	}{
		{"events arrive whole and in order", testEvents, false, true},
		{"headers arrive before any event", testHeaders, false, false},
		{"finished is a clean end", testFinished, false, true},
		{"going away is a clean end", testGoingAway, false, true},
		{"abort is not a clean end", testAbort, false, true},
		{"abort within an event is distinguished", testAbortWithin, false, true},
		{"a reset connection is not a clean end", testReset, true, true},
		{"closing the receiver ends the stream", testReceiverClose, false, true},
		{"the end of the context ends the stream", testContext, false, true},
		{"a closed sender returns an error", testSenderClosed, false, true},
		{"framings that are not offered are rejected", testRejected, false, false},
		{"many streams at once", testMany, false, true},
		{"a stalled reader does not affect other streams", testStalledReader, true, false},
		{"abort interrupts a blocked send", testAbortStalled, true, true},
		{"a clean close of a blocked stream has a timeout", testFinishStalled, true, true},
		{"a vanished peer is detected", testVanished, true, false},
		{"timeouts of the http.Server do not end streams", testServerTimeouts, true, false},
		{"streams are compressed on request", testCompressed, false, true},
		{"an event arrives before the next is sent", testPrompt, true, true},
		{"compressed streams share frames", testShared, false, true},
		{"the limit applies to decompressed events", testBomb, false, true},
		{"streams are not compressed without a request", testNotRequested, false, false},
		{"the server can disable compression", testCompressionDisabled, false, false},
	}
	for _, network := range networks {
		for _, test := range tests {
			if network.onlyBubbles && !test.bubble || network.Sockets && test.bubble {
				continue
			}
			compressions := []string{""}
			if test.compressed && !(test.bubble && network.TLS) {
				compressions = append(compressions, p.Compressions...)
			}
			for _, compression := range compressions {
				t.Run(path.Join(network.name, compression, test.name), func(t *testing.T) {
					inBubble(t, !network.Sockets, func(t *testing.T) {
						c := ServerConfig{Server: p.Server, TLS: network.TLS, Sockets: network.Sockets}
						test.run(&fixture{T: t, pair: p, compression: compression, config: c})
					})
				})
			}
		}
	}
}

// networks holds the networks of the tests. A test that needs no bubble runs once with TLS and once
// over sockets, where a server may write several buffers at once.
var networks = []struct {
	name         string
	TLS, Sockets bool
	onlyBubbles  bool
}{
	{"memory", false, false, true},
	{"memory TLS", true, false, false},
	{"sockets", false, true, false},
}

func inBubble(t *testing.T, bubble bool, f func(*testing.T)) {
	if bubble {
		synctest.Test(t, f)
		return
	}
	f(t)
}

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
func (f *fixture) dial(ctx context.Context, framings ...framing.Framer) (*transport.Stream, transport.Receiver) {
	f.Helper()
	f.open()
	r, err := f.client.Dial(ctx, &transport.Request{URL: f.server.URL, Framings: framings, Codings: f.codings(), Limit: f.limit})
	if err != nil {
		f.Fatalf("dial: %v", err)
	}
	f.Cleanup(func() { r.Close() })
	return <-f.server.Streams, r
}
