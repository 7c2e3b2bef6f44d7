package cases

// framingCases are those of how events become bytes.
var framingCases = []Case{
	{
		ID: "framing/ndjson-lines", Level: Must, Subject: Server, On: "h1 h2", Lane: "r",
		Says:  "in JSON each event is one object on one line, ended by one newline (Kubernetes' framing)",
		needs: Writes | Alone, run: ndjsonLines,
	},
	{
		ID: "framing/json-stream-decoder", Level: Must, Subject: Client, On: "h1 h2", Lane: "r",
		Says:  "a client reads JSON by its brackets: without newlines, with space, two events in one piece",
		needs: Inside, run: jsonStreamDecoder,
	},
	{
		ID: "framing/byte-drip", Level: Must, Subject: Both, On: all, Lane: "f",
		Says:  "where reads end does not matter: byte by byte, and split at every point",
		needs: Inside, run: byteDrip,
	},
	{
		ID: "framing/coalesced", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "events that come in one segment are all there, in order",
		needs: Writes | Alone, run: coalesced,
	},
	{
		ID: "framing/chunk-boundaries-free", Level: Must, Subject: Client, On: "h1", Lane: "f",
		Says:  "chunks may end anywhere, within a letter and within a number (RFC 9112, section 7.1)",
		needs: Inside, run: chunkBoundariesFree,
	},
	{
		ID: "framing/chunk-ext-trailers", Level: Must, Subject: Client, On: "h1", Lane: "r",
		Says:  "chunk extensions and trailers are passed over (RFC 9112, sections 7.1.1 and 7.1.2)",
		needs: Inside, run: chunkExtTrailers,
	},
	{
		ID: "framing/truncated-final", Level: Must, Subject: Client, On: all, Lane: "r",
		Says:  "a stream that ends within an event is told as such, and resumed from before it (RFC 9112, section 8)",
		needs: Inside, run: truncatedFinal,
	},
	{
		ID: "framing/clean-end-vs-abort", Level: Must, Subject: Client, On: all, Lane: "r",
		Says:  "a client tells a last chunk, END_STREAM or close 1000 from a stream that broke (RFC 9112, section 8; RFC 9113, section 8.1; RFC 6455, section 7.1.5)",
		needs: Inside, run: cleanEndVsAbort,
	},
	{
		ID: "framing/len-prefix", Level: Must, Subject: Both, On: "h1 h2", Lane: "r",
		Says:  "in length-prefixed JSON four bytes, big endian, say how many follow (Kubernetes' length-delimited frames)",
		needs: Writes | Alone, run: lenPrefix,
	},
	{
		ID: "framing/len-prefix-zero", Level: Promise, Subject: Client, On: "h1 h2", Lane: "r",
		Says:  "a frame of length zero is an error, or passed over",
		needs: Inside, run: lenPrefixZero,
	},
	{
		ID: "framing/len-prefix-huge", Level: Must, Subject: Client, On: "h1 h2", Lane: "r",
		Says:  "a length beyond the client's limit is refused before there is memory for it",
		needs: Inside, run: lenPrefixHuge, measures: true,
	},
	{
		ID: "framing/json-seq", Level: Must, Subject: Both, On: "h1 h2", Lane: "r",
		Says:  "in a JSON text sequence each event is RS, an object and LF, and one that is cut short is told (RFC 7464, sections 2.1 to 2.4)",
		needs: Writes | Alone, run: jsonSeq,
	},
	{
		ID: "framing/cbor-seq", Level: Must, Subject: Both, On: "h1 h2", Lane: "r",
		Says:  "application/cbor-seq is items of CBOR one behind another, which say what the JSON says (RFC 8742)",
		needs: Writes | Alone, run: cborSeq,
	},
	{
		ID: "framing/sse-fields", Level: Must, Subject: Both, On: "h1 h2", Lane: "r",
		Says:  "server-sent events have id, event and data lines and end with a blank one; the id is the resourceVersion (HTML, sections 9.2.5 and 9.2.6)",
		needs: Writes | Alone, run: sseFields,
	},
	{
		ID: "framing/sse-parse-vectors", Level: Must, Subject: Client, On: "h1 h2", Lane: "f",
		Says:  "a client reads every stream of server-sent events as HTML says (section 9.2.6; web-platform-tests eventsource/format-*)",
		needs: Inside, run: sseParseVectors,
	},
	{
		ID: "framing/sse-newline-in-data", Level: Must, Subject: Server, On: "h1 h2", Lane: "r",
		Says:  "a line break in an object never breaks a data line of server-sent events",
		needs: Writes | Alone, run: sseNewlineInData,
	},
	{
		ID: "framing/sse-content-type", Level: Must, Subject: Both, On: "h1 h2", Lane: "r",
		Says: "server-sent events are text/event-stream with Cache-Control: no-cache; a client refuses another type (HTML, section 9.2.3)",
		run:  sseContentType,
	},
	{
		ID: "framing/sse-204", Level: Must, Subject: Client, On: "h1 h2", Lane: "r",
		Says:  "204 ends a client of server-sent events for good (HTML, section 9.2.3)",
		needs: Inside, run: sse204,
	},
	{
		ID: "framing/ws-one-message-one-event", Level: Must, Subject: Server, On: "ws", Lane: "r",
		Says:  "over WebSocket each message is one event (Kubernetes' websocket framing)",
		needs: Writes | Alone, run: wsOneMessageOneEvent,
	},
	{
		ID: "framing/ws-opcode", Level: Must, Subject: Server, On: "ws", Lane: "r",
		Says:  "JSON goes in text messages, binary framings in binary ones (RFC 6455, section 5.6)",
		needs: Writes, run: wsOpcode,
	},
	{
		ID: "framing/ws-fragmented-in", Level: Must, Subject: Client, On: "ws", Lane: "r",
		Says:  "an event in fragments with a ping between them is one event, and the ping is answered (RFC 6455, sections 5.4 and 5.5.2)",
		needs: Inside, run: wsFragmentedIn,
	},
	{
		ID: "framing/ws-unmasked-server", Level: Must, Subject: Both, On: "ws", Lane: "r",
		Says:  "clients mask and servers don't; who meets the contrary closes with 1002 (RFC 6455, section 5.1)",
		needs: Writes, run: wsUnmaskedServer,
	},
	{
		ID: "framing/ws-rsv", Level: Must, Subject: Both, On: "ws", Lane: "r",
		Says: "a reserved bit that no extension uses is answered with close 1002 (RFC 6455, section 5.2)",
		run:  wsRSV,
	},
	{
		ID: "framing/ws-control-rules", Level: Must, Subject: Both, On: "ws", Lane: "r",
		Says: "a control frame that is fragmented or longer than 125 bytes is answered with close 1002 (RFC 6455, section 5.5)",
		run:  wsControlRules,
	},
	{
		ID: "framing/ws-bad-utf8", Level: Must, Subject: Client, On: "ws", Lane: "r",
		Says:  "text that is not UTF-8 is answered with close 1007 (RFC 6455, section 8.1)",
		needs: Inside, run: wsBadUTF8,
	},
	{
		ID: "framing/field-order-free", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "the members of an event come in any order, and with unknown ones (RFC 8259, section 4)",
		needs: Inside, run: fieldOrderFree,
	},
}
