package cases

// framingCases are those of how events become bytes.
var framingCases = []Case{
	{
		ID: "framing/ndjson-lines", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "in JSON each event is one object on one line, ended by one newline (Kubernetes' framing)",
		needs: Writes | SoleWriter, run: ndjsonLines,
	},
	{
		ID: "framing/json-stream-decoder", Level: Must, Subject: Client, Transports: "h1 h2", Mode: "r",
		Rule:  "a client reads JSON by its brackets: without newlines, with space, two events in one piece",
		needs: InProcess, run: jsonStreamDecoder,
	},
	{
		ID: "framing/byte-drip", Level: Must, Subject: Both, Transports: all, Mode: "f",
		Rule:  "where reads end does not matter: byte by byte, and split at every point",
		needs: InProcess, run: byteDrip,
	},
	{
		ID: "framing/coalesced", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "events that come in one segment are all there, in order",
		needs: Writes | SoleWriter, run: coalesced,
	},
	{
		ID: "framing/chunk-boundaries-free", Level: Must, Subject: Client, Transports: "h1", Mode: "f",
		Rule:  "chunks may end anywhere, within a letter and within a number (RFC 9112, section 7.1)",
		needs: InProcess, run: chunkBoundariesFree,
	},
	{
		ID: "framing/chunk-ext-trailers", Level: Must, Subject: Client, Transports: "h1", Mode: "r",
		Rule:  "chunk extensions and trailers are passed over (RFC 9112, sections 7.1.1 and 7.1.2)",
		needs: InProcess, run: chunkExtTrailers,
	},
	{
		ID: "framing/truncated-final", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "a stream that ends within an event is told as such, and resumed from before it (RFC 9112, section 8)",
		needs: InProcess, run: truncatedFinal,
	},
	{
		ID: "framing/clean-end-vs-abort", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "a client tells a last chunk, END_STREAM or close 1000 from a stream that broke (RFC 9112, section 8; RFC 9113, section 8.1; RFC 6455, section 7.1.5)",
		needs: InProcess, run: cleanEndVsAbort,
	},
	{
		ID: "framing/len-prefix", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule:  "in length-prefixed JSON four bytes, big endian, say how many follow (Kubernetes' length-delimited frames)",
		needs: Writes | SoleWriter, run: lenPrefix,
	},
	{
		ID: "framing/len-prefix-zero", Level: Promise, Subject: Client, Transports: "h1 h2", Mode: "r",
		Rule:  "a frame of length zero is an error, or passed over",
		needs: InProcess, run: lenPrefixZero,
	},
	{
		ID: "framing/len-prefix-huge", Level: Must, Subject: Client, Transports: "h1 h2", Mode: "r",
		Rule:  "a length beyond the client's limit is refused before there is memory for it",
		needs: InProcess, run: lenPrefixHuge, measures: true,
	},
	{
		ID: "framing/json-seq", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule:  "in a JSON text sequence each event is RS, an object and LF, and one that is cut short is told (RFC 7464, sections 2.1 to 2.4)",
		needs: Writes | SoleWriter, run: jsonSeq,
	},
	{
		ID: "framing/cbor-seq", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule:  "application/cbor-seq is items of CBOR one behind another, which say what the JSON says (RFC 8742)",
		needs: Writes | SoleWriter, run: cborSeq,
	},
	{
		ID: "framing/sse-fields", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule:  "server-sent events have id, event and data lines and end with a blank one; the id is the resourceVersion (HTML, sections 9.2.5 and 9.2.6)",
		needs: Writes | SoleWriter, run: sseFields,
	},
	{
		ID: "framing/sse-parse-vectors", Level: Must, Subject: Client, Transports: "h1 h2", Mode: "f",
		Rule:  "a client reads every stream of server-sent events as HTML says (section 9.2.6; web-platform-tests eventsource/format-*)",
		needs: InProcess, run: sseParseVectors,
	},
	{
		ID: "framing/sse-newline-in-data", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "a line break in an object never breaks a data line of server-sent events",
		needs: Writes | SoleWriter, run: sseNewlineInData,
	},
	{
		ID: "framing/sse-content-type", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule: "server-sent events are text/event-stream with Cache-Control: no-cache; a client refuses another type (HTML, section 9.2.3)",
		run:  sseContentType,
	},
	{
		ID: "framing/sse-204", Level: Must, Subject: Client, Transports: "h1 h2", Mode: "r",
		Rule:  "204 ends a client of server-sent events for good (HTML, section 9.2.3)",
		needs: InProcess, run: sse204,
	},
	{
		ID: "framing/ws-one-message-one-event", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule:  "over WebSocket each message is one event (Kubernetes' websocket framing)",
		needs: Writes | SoleWriter, run: wsOneMessageOneEvent,
	},
	{
		ID: "framing/ws-opcode", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule:  "JSON goes in text messages, binary framings in binary ones (RFC 6455, section 5.6)",
		needs: Writes, run: wsOpcode,
	},
	{
		ID: "framing/ws-fragmented-in", Level: Must, Subject: Client, Transports: "ws", Mode: "r",
		Rule:  "an event in fragments with a ping between them is one event, and the ping is answered (RFC 6455, sections 5.4 and 5.5.2)",
		needs: InProcess, run: wsFragmentedIn,
	},
	{
		ID: "framing/ws-unmasked-server", Level: Must, Subject: Both, Transports: "ws", Mode: "r",
		Rule:  "clients mask and servers don't; who meets the contrary closes with 1002 (RFC 6455, section 5.1)",
		needs: Writes, run: wsUnmaskedServer,
	},
	{
		ID: "framing/ws-rsv", Level: Must, Subject: Both, Transports: "ws", Mode: "r",
		Rule: "a reserved bit that no extension uses is answered with close 1002 (RFC 6455, section 5.2)",
		run:  wsRSV,
	},
	{
		ID: "framing/ws-control-rules", Level: Must, Subject: Both, Transports: "ws", Mode: "r",
		Rule: "a control frame that is fragmented or longer than 125 bytes is answered with close 1002 (RFC 6455, section 5.5)",
		run:  wsControlRules,
	},
	{
		ID: "framing/ws-bad-utf8", Level: Must, Subject: Client, Transports: "ws", Mode: "r",
		Rule:  "text that is not UTF-8 is answered with close 1007 (RFC 6455, section 8.1)",
		needs: InProcess, run: wsBadUTF8,
	},
	{
		ID: "framing/field-order-free", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "the members of an event come in any order, and with unknown ones (RFC 8259, section 4)",
		needs: InProcess, run: fieldOrderFree,
	},
}
