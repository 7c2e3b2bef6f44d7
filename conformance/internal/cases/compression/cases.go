// Package compression has the cases about content codings and permessage-deflate.
package compression

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases lists the cases about compression.
var Cases = []harness.Case{
	{
		ID: "comp/gzip", Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: gzipCoding,
		Rule: "a client that accepts gzip gets it, with Content-Encoding, and can read each event before the next is " +
			"written (RFC 9110, sections 8.4 and 12.5)",
	},
	{
		ID: "comp/zstd", Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: zstdCoding,
		Rule: "a client that accepts zstd gets it, with Content-Encoding, and can read each event before the next is " +
			"written (RFC 8878)",
	},
	{
		ID: "comp/not-asked", Transports: "h1 h2", Needs: harness.OwnCollection, Run: notRequested,
		Rule: "a client that requests no compression gets none (RFC 9110, section 12.5.3)",
	},
	{
		ID: "comp/first-event-latency", Subject: harness.Both, Needs: harness.OwnCollection, Run: firstEventLatency,
		Rule: "a compressor does not hold back a small event",
	},
	{
		ID: "comp/multi-member", Subject: harness.Client, Transports: "h1 h2", Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: multiMember,
		Rule: "a client reads gzip with several members and zstd with several frames, each as it arrives (RFC 1952, " +
			"section 2.2)",
	},
	{
		ID: "comp/ws-deflate", Subject: harness.Both, Transports: "ws", Needs: harness.OwnCollection, Run: wsDeflate,
		Rule: "the server accepts an offer of permessage-deflate, and RSV1 is set on the first frame of a message " +
			"only (RFC 7692, sections 5.1 and 6)",
	},
	{
		ID: "comp/ws-no-context", Subject: harness.Both, Transports: "ws", Needs: harness.OwnCollection,
		Run:  wsNoContext,
		Rule: "without context takeover each message is compressed independently (RFC 7692, section 7.1.1)",
	},
	{
		ID: "comp/ws-declined", Subject: harness.Both, Transports: "ws", Needs: harness.OwnCollection, Run: wsDeclined,
		Rule: "the server declines an unacceptable offer, and messages stay uncompressed (RFC 7692, sections 5.1 and " +
			"7.1)",
	},
	{
		ID: "comp/shared-history", Subject: harness.Both,
		Needs: harness.OwnCollection | harness.Configurable | harness.Drains,
		Setup: harness.Setup{
			SharedCompression: watchserver.ShareAlways, Timing: watchserver.Timing{Bookmark: 50 * time.Millisecond},
		},
		Run: sharedHistory,
		Rule: "a compressed event refers to earlier events only if the client has received their text, and no other " +
			"text in between (RFC 1951, section 2)",
	},
	{
		ID: "comp/shared-once", Level: harness.Promise, Needs: harness.OwnCollection | harness.InProcess,
		Run:  sharedOnce,
		Rule: "an event is encoded and compressed once, however many clients watch it",
	},
	{
		ID: "comp/breach-opt-out", Level: harness.Promise, Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.Setup{NoCompression: true}, Run: optOut,
		Rule: "compression can be disabled, for responses that mix secrets with text that an attacker controls",
	},
}
