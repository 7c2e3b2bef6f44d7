package cases

// compCases are those of compression.
var compCases = []Case{
	{
		ID: "comp/gzip", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule:  "gzip is for who asks for it, is named, and each event can be read before the next is written (RFC 9110, sections 8.4 and 12.5)",
		needs: Writes | SoleWriter, run: compGzip,
	},
	{
		ID: "comp/zstd", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule:  "zstd is for who asks for it, is named, and each event can be read before the next is written (RFC 8878)",
		needs: Writes | SoleWriter, run: compZstd,
	},
	{
		ID: "comp/not-asked", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "nothing is compressed for who does not ask for it, or asks for none (RFC 9110, section 12.5.3)",
		needs: Writes | SoleWriter, run: compNotAsked,
	},
	{
		ID: "comp/first-event-latency", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "one small event is not held back by a compressor",
		needs: Writes | SoleWriter, run: compFirstEvent,
	},
	{
		ID: "comp/multi-member", Level: Must, Subject: Client, Transports: "h1 h2", Mode: "f",
		Rule:  "a client reads gzip of several members and zstd of several frames, each as soon as it is there (RFC 1952, section 2.2)",
		needs: InProcess, run: compMultiMember,
	},
	{
		ID: "comp/ws-deflate", Level: Must, Subject: Both, Transports: "ws", Mode: "r",
		Rule:  "permessage-deflate is agreed to where it is offered, and RSV1 is set on the first frame of a message alone (RFC 7692, sections 5.1 and 6)",
		needs: Writes | SoleWriter, run: wsDeflate,
	},
	{
		ID: "comp/ws-no-context", Level: Must, Subject: Both, Transports: "ws", Mode: "r",
		Rule:  "where no context is to be kept, each message is compressed by itself (RFC 7692, section 7.1.1)",
		needs: Writes | SoleWriter, run: wsNoContext,
	},
	{
		ID: "comp/ws-declined", Level: Must, Subject: Both, Transports: "ws", Mode: "r",
		Rule:  "an offer that can't be agreed to is declined, and then messages are as they are (RFC 7692, sections 5.1 and 7.1)",
		needs: Writes | SoleWriter, run: wsDeclined,
	},
	{
		ID: "comp/shared-once", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "an event is made into bytes and compressed once, however many watch it",
		needs: Writes | SoleWriter | InProcess, run: compSharedOnce,
	},
	{
		ID: "comp/breach-opt-out", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "compression can be off, for answers that mix secrets with what others wrote",
		setup: Setup{NoCompression: true},
		needs: Writes | SoleWriter | Configurable, run: compOptOut,
	},
}
