// Package framing has the conformance cases about the framings of a stream: JSON lines,
// length-prefixed JSON, JSON text sequences, CBOR sequences, server-sent events and
// WebSocket messages.
package framing

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check how servers encode events as bytes, and how clients decode them.
var Cases = []harness.Case{
	{
		ID: "framing/ndjson-lines", Transports: "h1 h2", Needs: harness.OwnCollection, Run: ndjsonLines,
		Rule: "in JSON each event is one object on one line that ends with one newline (Kubernetes' framing)",
	},
	{
		ID: "framing/json-stream-decoder", Subject: harness.Client, Transports: "h1 h2", Needs: harness.InProcess,
		Run: jsonStreamDecoder,
		Rule: "a client finds the end of a JSON object by its brackets: without newlines, with spaces, or with two " +
			"events in one read",
	},
	{
		ID: "framing/byte-drip", Subject: harness.Both, Mode: harness.FakeTime, Needs: harness.InProcess, Run: byteDrip,
		Rule: "the boundaries of reads do not matter: byte by byte, and split at every point",
	},
	{
		ID: "framing/coalesced", Subject: harness.Both, Needs: harness.OwnCollection, Run: coalesced,
		Rule: "several events in one segment are all delivered, in order",
	},
	{
		ID: "framing/chunk-boundaries-free", Subject: harness.Client, Transports: "h1", Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: chunkBoundariesFree,
		Rule: "chunks may end anywhere, within a character and within a number (RFC 9112, section 7.1)",
	},
	{
		ID: "framing/chunk-ext-trailers", Subject: harness.Client, Transports: "h1", Needs: harness.InProcess,
		Run:  chunkExtTrailers,
		Rule: "a client ignores chunk extensions and trailers (RFC 9112, sections 7.1.1 and 7.1.2)",
	},
	{
		ID: "framing/truncated-final", Subject: harness.Client, Needs: harness.InProcess, Run: truncatedFinal,
		Rule: "a client reports a stream that ends within an event as truncated, and resumes before that event (RFC " +
			"9112, section 8)",
	},
	{
		ID: "framing/clean-end-vs-abort", Subject: harness.Client, Needs: harness.InProcess, Run: cleanEndVsAbort,
		Rule: "a client distinguishes a last chunk, END_STREAM or close 1000 from a broken stream (RFC 9112, section " +
			"8; RFC 9113, section 8.1; RFC 6455, section 7.1.5)",
	},
	{
		ID: "framing/len-prefix", Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection,
		Run: lenPrefix,
		Rule: "in length-prefixed JSON a four-byte big-endian length precedes each event (Kubernetes' " +
			"length-delimited frames)",
	},
	{
		ID: "framing/len-prefix-zero", Level: harness.Promise, Subject: harness.Client, Transports: "h1 h2",
		Needs: harness.InProcess, Run: lenPrefixZero,
		Rule: "a frame of length zero is an error, or is ignored",
	},
	{
		ID: "framing/len-prefix-huge", Subject: harness.Client, Transports: "h1 h2", RunsAlone: true,
		Needs: harness.InProcess, Run: lenPrefixHuge,
		Rule: "a client rejects a length beyond its limit before it allocates memory",
	},
	{
		ID: "framing/json-seq", Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: jsonSeq,
		Rule: "in a JSON text sequence each event is RS, an object and LF, and a truncated one is reported (RFC " +
			"7464, sections 2.1 to 2.4)",
	},
	{
		ID: "framing/cbor-seq", Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: cborSeq,
		Rule: "application/cbor-seq is a sequence of CBOR items with the same content as the JSON (RFC 8742)",
	},
	{
		ID: "framing/sse-fields", Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection,
		Run: sseFields,
		Rule: "a server-sent event has id, event and data lines and ends with a blank line; the id is the " +
			"resourceVersion (HTML, sections 9.2.5 and 9.2.6)",
	},
	{
		ID: "framing/sse-parse-vectors", Subject: harness.Client, Transports: "h1 h2", Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: sseParseVectors,
		Rule: "a client parses server-sent events as HTML specifies (section 9.2.6; web-platform-tests " +
			"eventsource/format-*)",
	},
	{
		ID: "framing/sse-newline-in-data", Transports: "h1 h2", Needs: harness.OwnCollection, Run: sseNewlineInData,
		Rule: "a line break in an object never breaks a data line of a server-sent event",
	},
	{
		ID: "framing/sse-content-type", Subject: harness.Both, Transports: "h1 h2", Run: sseContentType,
		Rule: "server-sent events are text/event-stream with Cache-Control: no-cache; a client rejects another type " +
			"(HTML, section 9.2.3)",
	},
	{
		ID: "framing/sse-204", Subject: harness.Client, Transports: "h1 h2", Needs: harness.InProcess, Run: sse204,
		Rule: "after 204 a client of server-sent events does not reconnect (HTML, section 9.2.3)",
	},
	{
		ID: "framing/ws-one-message-one-event", Transports: "ws", Needs: harness.OwnCollection,
		Run:  wsOneMessageOneEvent,
		Rule: "over WebSocket each message is one event (Kubernetes' websocket framing)",
	},
	{
		ID: "framing/ws-opcode", Transports: "ws", Needs: harness.Writes, Run: wsOpcode,
		Rule: "JSON is sent in text messages, binary framings in binary messages (RFC 6455, section 5.6)",
	},
	{
		ID: "framing/ws-fragmented-in", Subject: harness.Client, Transports: "ws", Needs: harness.InProcess,
		Run: wsFragmentedIn,
		Rule: "a fragmented event with a ping in between is one event, and the ping is answered (RFC 6455, sections " +
			"5.4 and 5.5.2)",
	},
	{
		ID: "framing/ws-unmasked-server", Subject: harness.Both, Transports: "ws", Needs: harness.Writes,
		Run: wsUnmaskedServer,
		Rule: "client frames are masked and server frames are not; either end closes with 1002 otherwise (RFC 6455, " +
			"section 5.1)",
	},
	{
		ID: "framing/ws-rsv", Subject: harness.Both, Transports: "ws", Run: wsRSV,
		Rule: "a reserved bit that no extension uses causes close 1002 (RFC 6455, section 5.2)",
	},
	{
		ID: "framing/ws-control-rules", Subject: harness.Both, Transports: "ws", Run: wsControlRules,
		Rule: "a control frame that is fragmented or longer than 125 bytes causes close 1002 (RFC 6455, section 5.5)",
	},
	{
		ID: "framing/ws-bad-utf8", Subject: harness.Client, Transports: "ws", Needs: harness.InProcess, Run: wsBadUTF8,
		Rule: "a text message that is not UTF-8 causes close 1007 (RFC 6455, section 8.1)",
	},
	{
		ID: "framing/field-order-free", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run:  fieldOrderFree,
		Rule: "a client accepts the members of an event in any order, and ignores unknown ones (RFC 8259, section 4)",
	},
}
