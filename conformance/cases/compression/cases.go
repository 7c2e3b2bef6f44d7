// Package compression has the cases about content codings and permessage-deflate.
package compression

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of compression.
var Cases = []harness.Case{
	{
		ID: "comp/gzip", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Mode: "r",
		Rule:  "gzip is for who asks for it, is named, and each event can be read before the next is written (RFC 9110, sections 8.4 and 12.5)",
		Needs: harness.Writes | harness.SoleWriter, Run: compGzip,
	},
	{
		ID: "comp/zstd", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Mode: "r",
		Rule:  "zstd is for who asks for it, is named, and each event can be read before the next is written (RFC 8878)",
		Needs: harness.Writes | harness.SoleWriter, Run: compZstd,
	},
	{
		ID: "comp/not-asked", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Mode: "r",
		Rule:  "nothing is compressed for who does not ask for it, or asks for none (RFC 9110, section 12.5.3)",
		Needs: harness.Writes | harness.SoleWriter, Run: compNotAsked,
	},
	{
		ID: "comp/first-event-latency", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "one small event is not held back by a compressor",
		Needs: harness.Writes | harness.SoleWriter, Run: compFirstEvent,
	},
	{
		ID: "comp/multi-member", Level: harness.Must, Subject: harness.Client, Transports: "h1 h2", Mode: "f",
		Rule:  "a client reads gzip of several members and zstd of several frames, each as soon as it is there (RFC 1952, section 2.2)",
		Needs: harness.InProcess, Run: compMultiMember,
	},
	{
		ID: "comp/ws-deflate", Level: harness.Must, Subject: harness.Both, Transports: "ws", Mode: "r",
		Rule:  "permessage-deflate is agreed to where it is offered, and RSV1 is set on the first frame of a message alone (RFC 7692, sections 5.1 and 6)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsDeflate,
	},
	{
		ID: "comp/ws-no-context", Level: harness.Must, Subject: harness.Both, Transports: "ws", Mode: "r",
		Rule:  "where no context is to be kept, each message is compressed by itself (RFC 7692, section 7.1.1)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsNoContext,
	},
	{
		ID: "comp/ws-declined", Level: harness.Must, Subject: harness.Both, Transports: "ws", Mode: "r",
		Rule:  "an offer that can't be agreed to is declined, and then messages are as they are (RFC 7692, sections 5.1 and 7.1)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsDeclined,
	},
	{
		ID: "comp/shared-once", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "an event is made into bytes and compressed once, however many watch it",
		Needs: harness.Writes | harness.SoleWriter | harness.InProcess, Run: compSharedOnce,
	},
	{
		ID: "comp/breach-opt-out", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "compression can be off, for answers that mix secrets with what others wrote",
		Setup: harness.Setup{NoCompression: true},
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Run: compOptOut,
	},
}
