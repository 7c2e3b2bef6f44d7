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
		ID: "comp/gzip", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "a client that accepts gzip gets it, with Content-Encoding, and can read each " +
			"event before the next is written (RFC 9110, sections 8.4 and 12.5)",
		Needs: harness.Writes | harness.SoleWriter, Run: gzipCoding,
	},
	{
		ID: "comp/zstd", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "a client that accepts zstd gets it, with Content-Encoding, and can read each " +
			"event before the next is written (RFC 8878)",
		Needs: harness.Writes | harness.SoleWriter, Run: zstdCoding,
	},
	{
		ID: "comp/not-asked", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "a client that requests no compression gets none (RFC 9110, section 12.5.3)",
		Needs: harness.Writes | harness.SoleWriter, Run: notRequested,
	},
	{
		ID: "comp/first-event-latency", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a compressor does not hold back a small event",
		Needs: harness.Writes | harness.SoleWriter, Run: firstEventLatency,
	},
	{
		ID: "comp/multi-member", Level: harness.Must, Subject: harness.Client, Transports: "h1 h2", Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client reads gzip with several members and zstd with several frames, each " +
			"as it arrives (RFC 1952, section 2.2)",
		Needs: harness.InProcess, Run: multiMember,
	},
	{
		ID: "comp/ws-deflate", Level: harness.Must, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "the server accepts an offer of permessage-deflate, and RSV1 is set on the " +
			"first frame of a message only (RFC 7692, sections 5.1 and 6)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsDeflate,
	},
	{
		ID: "comp/ws-no-context", Level: harness.Must, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "without context takeover each message is compressed independently (RFC 7692, " +
			"section 7.1.1)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsNoContext,
	},
	{
		ID: "comp/ws-declined", Level: harness.Must, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "the server declines an unacceptable offer, and messages stay uncompressed " +
			"(RFC 7692, sections 5.1 and 7.1)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsDeclined,
	},
	{
		ID: "comp/shared-history", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a compressed event refers to earlier events only if the client has received " +
			"their text, and no other text in between (RFC 1951, section 2)",
		Setup: harness.Setup{SharedCompression: watchserver.ShareAlways, Timing: watchserver.Timing{Bookmark: 50 * time.Millisecond}},
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable | harness.Drains, Run: sharedHistory,
	},
	{
		ID: "comp/shared-once", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "an event is encoded and compressed once, however many clients watch it",
		Needs: harness.Writes | harness.SoleWriter | harness.InProcess, Run: sharedOnce,
	},
	{
		ID: "comp/breach-opt-out", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "compression can be disabled, for responses that mix secrets with text that an " +
			"attacker controls",
		Setup: harness.Setup{NoCompression: true},
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Run: optOut,
	},
}
