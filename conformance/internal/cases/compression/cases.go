// Package compression has the cases about content codings and permessage-deflate.
package compression

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases lists the cases about compression.
var Cases = []harness.Case{
	harness.Rule("comp/gzip",
		"a client that accepts gzip gets it, with Content-Encoding, and can read each event before the next is "+
			"written (RFC 9110, sections 8.4 and 12.5)",
		harness.Case{Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: gzipCoding}),
	harness.Rule("comp/zstd",
		"a client that accepts zstd gets it, with Content-Encoding, and can read each event before the next is "+
			"written (RFC 8878)",
		harness.Case{Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: zstdCoding}),
	harness.Rule("comp/not-asked", "a client that requests no compression gets none (RFC 9110, section 12.5.3)",
		harness.Case{Transports: "h1 h2", Needs: harness.OwnCollection, Run: notRequested}),
	harness.Rule("comp/first-event-latency", "a compressor does not hold back a small event",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: firstEventLatency}),
	harness.Rule("comp/multi-member",
		"a client reads gzip with several members and zstd with several frames, each as it arrives (RFC 1952, section "+
			"2.2)", harness.Case{
			Subject: harness.Client, Transports: "h1 h2", Mode: harness.FakeTime, Needs: harness.InProcess,
			Run: multiMember,
		}),
	harness.Rule("comp/ws-deflate",
		"the server accepts an offer of permessage-deflate, and RSV1 is set on the first frame of a message only (RFC "+
			"7692, sections 5.1 and 6)",
		harness.Case{Subject: harness.Both, Transports: "ws", Needs: harness.OwnCollection, Run: wsDeflate}),
	harness.Rule("comp/ws-no-context",
		"without context takeover each message is compressed independently (RFC 7692, section 7.1.1)",
		harness.Case{Subject: harness.Both, Transports: "ws", Needs: harness.OwnCollection, Run: wsNoContext}),
	harness.Rule("comp/ws-declined",
		"the server declines an unacceptable offer, and messages stay uncompressed (RFC 7692, sections 5.1 and 7.1)",
		harness.Case{Subject: harness.Both, Transports: "ws", Needs: harness.OwnCollection, Run: wsDeclined}),
	harness.Rule("comp/shared-history",
		"a compressed event refers to earlier events only if the client has received their text, and no other text in "+
			"between (RFC 1951, section 2)", harness.Case{
			Subject: harness.Both, Needs: harness.OwnCollection | harness.Configurable | harness.Drains,
			Setup: harness.Setup{
				SharedCompression: watchserver.ShareAlways, Timing: watchserver.Timing{Bookmark: 50 * time.Millisecond},
			},
			Run: sharedHistory,
		}),
	harness.Rule("comp/shared-once", "an event is encoded and compressed once, however many clients watch it",
		harness.Case{Strength: harness.Promise, Needs: harness.OwnCollection | harness.InProcess, Run: sharedOnce}),
	harness.Rule("comp/breach-opt-out",
		"compression can be disabled, for responses that mix secrets with text that an attacker controls", harness.Case{
			Strength: harness.Promise, Needs: harness.OwnCollection | harness.Configurable,
			Setup: harness.Setup{NoCompression: true}, Run: optOut,
		}),
}
