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

// A Pair is the two ends of a transport.
type Pair struct {
	// Server is one end.
	Server transport.Server
	// Client makes the other.
	Client func(n transport.Network) transport.Client
	// Configure, where not nil, prepares the http.Server.
	Configure func(*http.Server, transport.Options)
	// Framings are those to run; nil: JSON alone.
	Framings []framing.Framer
	// Compressions are what Server compresses with: names of content codings, or of an extension;
	// nil: nothing.
	Compressions []string
	// Whole is true where the Server writes the boundaries of events by itself, so that half of
	// one can't be sent.
	CannotSplitFrames bool
}

// Run tests p: every promise of package transport that the two ends must keep together.
func Run(t *testing.T, p Pair) {
	t.Helper()
	if p.Framings == nil {
		p.Framings = []framing.Framer{framing.JSON{}}
	}
	tests := []struct {
		name string
		run  func(*fixture)
		fake bool // needs the clock or the network of a bubble
		// coded: once more for each of Compressions
		coded bool
	}{
		{"events arrive whole and in order", testEvents, false, true},
		{"headers arrive before any event", testHeaders, false, false},
		{"finished is a clean end", testFinished, false, true},
		{"going away is a clean end", testGoingAway, false, true},
		{"abort is no clean end", testAbort, false, true},
		{"abort within an event is told from one between events", testAbortWithin, false, true},
		{"a broken connection is no clean end", testReset, true, true},
		{"closing the receiver ends the stream", testReceiverClose, false, true},
		{"the context breaks the stream off", testContext, false, true},
		{"a closed sender refuses", testSenderClosed, false, true},
		{"framings that are not on offer are refused", testRefused, false, false},
		{"many streams at once", testMany, false, true},
		{"a stalled reader is cut off and the others go on", testStalledReader, true, false},
		{"abort ends a send that waits", testAbortStalled, true, true},
		{"a clean close gives a stalled send up in time", testFinishStalled, true, true},
		{"a peer that vanished is noticed", testVanished, true, false},
		{"time-outs of the http.Server spare streams", testServerTimeouts, true, false},
		{"streams are compressed for who asks", testCompressed, false, true},
		{"an event is there before the next is sent", testPrompt, true, true},
		{"streams of one compression share their frames", testShared, false, true},
		{"an event is bounded however small it came", testBomb, false, true},
		{"who doesn't ask gets streams as they are", testUnasked, false, false},
		{"who may not be compressed for gets streams as they are", testUncompressed, false, false},
	}
	for _, network := range networks {
		for _, test := range tests {
			if test.fake && network.Sockets {
				continue
			}
			compressions := []string{""}
			if test.coded && network.TLS == network.Sockets {
				compressions = append(compressions, p.Compressions...)
			}
			for _, compression := range compressions {
				t.Run(path.Join(network.name, compression, test.name), func(t *testing.T) {
					authority() // outside the bubble, whose goroutines must not wait for others
					inBubble(t, !network.Sockets, func(t *testing.T) {
						c := ServerConfig{Server: p.Server, TLS: network.TLS, Sockets: network.Sockets}
						test.run(&fixture{T: t, pair: p, compression: compression, config: c})
					})
				})
			}
		}
	}
}

var networks = []struct {
	name         string
	TLS, Sockets bool
}{
	{"memory", false, false},
	{"memory TLS", true, false},
	{"sockets", false, true},
	{"sockets TLS", true, true},
}

func inBubble(t *testing.T, bubble bool, f func(*testing.T)) {
	if bubble {
		synctest.Test(t, f)
		return
	}
	f(t)
}

// A fixture is what a test of the suite has: a site, opened on the first dial, and a client for it.
type fixture struct {
	*testing.T
	pair        Pair
	compression string // what dial asks for; empty: nothing
	config      ServerConfig

	limit int // of one event; zero: the default

	site   *TestServer
	client transport.Client
}

// codings returns the content codings to ask for. A transport that has other ways to compress is
// asked by any of them.
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
	if f.site != nil {
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
	f.site = StartServer(f, f.config)
	f.client = f.pair.Client(f.site.Network)
	f.Cleanup(func() {
		if c, ok := f.client.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	})
}

// dial opens a stream and returns both ends.
func (f *fixture) dial(ctx context.Context, framings ...framing.Framer) (*transport.Stream, transport.Receiver) {
	f.Helper()
	f.open()
	r, err := f.client.Dial(ctx, &transport.Request{URL: f.site.URL, Framings: framings, Codings: f.codings(), Limit: f.limit})
	if err != nil {
		f.Fatalf("dial: %v", err)
	}
	f.Cleanup(func() { r.Close() })
	return <-f.site.Streams, r
}
