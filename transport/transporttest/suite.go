package transporttest

import (
	"net/http"
	"path"
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
	// Framings are the framings to test, which need not be registered elsewhere. The events are
	// JSON, so a [framing.EncodedFramer] cannot be tested. If nil, only JSON is tested.
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

// networks holds the networks of the tests. A test that needs a bubble runs in memory, with and
// without TLS. Any other test runs in memory with TLS, and over sockets, where a server may write
// several buffers at once.
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
