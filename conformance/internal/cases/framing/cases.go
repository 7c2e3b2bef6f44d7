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
		ID: "framing/ndjson-lines", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "in JSON each event is one object on one line that ends with one newline " +
			"(Kubernetes' framing)",
		Needs: harness.Writes | harness.SoleWriter, Run: ndjsonLines,
	},
	{
		ID: "framing/json-stream-decoder", Level: harness.Must, Subject: harness.Client, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "a client finds the end of a JSON object by its brackets: without newlines, " +
			"with spaces, or with two events in one read",
		Needs: harness.InProcess, Run: jsonStreamDecoder,
	},
	{
		ID: "framing/byte-drip", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "the boundaries of reads do not matter: byte by byte, and split at every point",
		Needs: harness.InProcess, Run: byteDrip,
	},
	{
		ID: "framing/coalesced", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "several events in one segment are all delivered, in order",
		Needs: harness.Writes | harness.SoleWriter, Run: coalesced,
	},
	{
		ID: "framing/chunk-boundaries-free", Level: harness.Must, Subject: harness.Client, Transports: "h1", Modes: []harness.Mode{harness.FakeTime},
		Rule: "chunks may end anywhere, within a character and within a number (RFC 9112, " +
			"section 7.1)",
		Needs: harness.InProcess, Run: chunkBoundariesFree,
	},
	{
		ID: "framing/chunk-ext-trailers", Level: harness.Must, Subject: harness.Client, Transports: "h1", Modes: []harness.Mode{harness.RealTime},
		Rule: "a client ignores chunk extensions and trailers (RFC 9112, sections 7.1.1 and " +
			"7.1.2)",
		Needs: harness.InProcess, Run: chunkExtTrailers,
	},
	{
		ID: "framing/truncated-final", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client reports a stream that ends within an event as truncated, and resumes " +
			"before that event (RFC 9112, section 8)",
		Needs: harness.InProcess, Run: truncatedFinal,
	},
	{
		ID: "framing/clean-end-vs-abort", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client distinguishes a last chunk, END_STREAM or close 1000 from a broken " +
			"stream (RFC 9112, section 8; RFC 9113, section 8.1; RFC 6455, section 7.1.5)",
		Needs: harness.InProcess, Run: cleanEndVsAbort,
	},
	{
		ID: "framing/len-prefix", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "in length-prefixed JSON a four-byte big-endian length precedes each event " +
			"(Kubernetes' length-delimited frames)",
		Needs: harness.Writes | harness.SoleWriter, Run: lenPrefix,
	},
	{
		ID: "framing/len-prefix-zero", Level: harness.Promise, Subject: harness.Client, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "a frame of length zero is an error, or is ignored",
		Needs: harness.InProcess, Run: lenPrefixZero,
	},
	{
		ID: "framing/len-prefix-huge", Level: harness.Must, Subject: harness.Client, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "a client rejects a length beyond its limit before it allocates memory",
		Needs: harness.InProcess, Run: lenPrefixHuge, RunsAlone: true,
	},
	{
		ID: "framing/json-seq", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "in a JSON text sequence each event is RS, an object and LF, and a truncated " +
			"one is reported (RFC 7464, sections 2.1 to 2.4)",
		Needs: harness.Writes | harness.SoleWriter, Run: jsonSeq,
	},
	{
		ID: "framing/cbor-seq", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "application/cbor-seq is a sequence of CBOR items with the same content as the " +
			"JSON (RFC 8742)",
		Needs: harness.Writes | harness.SoleWriter, Run: cborSeq,
	},
	{
		ID: "framing/sse-fields", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "a server-sent event has id, event and data lines and ends with a blank line; " +
			"the id is the resourceVersion (HTML, sections 9.2.5 and 9.2.6)",
		Needs: harness.Writes | harness.SoleWriter, Run: sseFields,
	},
	{
		ID: "framing/sse-parse-vectors", Level: harness.Must, Subject: harness.Client, Transports: "h1 h2", Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client parses server-sent events as HTML specifies (section 9.2.6; " +
			"web-platform-tests eventsource/format-*)",
		Needs: harness.InProcess, Run: sseParseVectors,
	},
	{
		ID: "framing/sse-newline-in-data", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "a line break in an object never breaks a data line of a server-sent event",
		Needs: harness.Writes | harness.SoleWriter, Run: sseNewlineInData,
	},
	{
		ID: "framing/sse-content-type", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "server-sent events are text/event-stream with Cache-Control: no-cache; a " +
			"client rejects another type (HTML, section 9.2.3)",
		Run: sseContentType,
	},
	{
		ID: "framing/sse-204", Level: harness.Must, Subject: harness.Client, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "after 204 a client of server-sent events does not reconnect (HTML, section " +
			"9.2.3)",
		Needs: harness.InProcess, Run: sse204,
	},
	{
		ID: "framing/ws-one-message-one-event", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule:  "over WebSocket each message is one event (Kubernetes' websocket framing)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsOneMessageOneEvent,
	},
	{
		ID: "framing/ws-opcode", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "JSON is sent in text messages, binary framings in binary messages (RFC 6455, " +
			"section 5.6)",
		Needs: harness.Writes, Run: wsOpcode,
	},
	{
		ID: "framing/ws-fragmented-in", Level: harness.Must, Subject: harness.Client, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a fragmented event with a ping in between is one event, and the ping is " +
			"answered (RFC 6455, sections 5.4 and 5.5.2)",
		Needs: harness.InProcess, Run: wsFragmentedIn,
	},
	{
		ID: "framing/ws-unmasked-server", Level: harness.Must, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "client frames are masked and server frames are not; either end closes with " +
			"1002 otherwise (RFC 6455, section 5.1)",
		Needs: harness.Writes, Run: wsUnmaskedServer,
	},
	{
		ID: "framing/ws-rsv", Level: harness.Must, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a reserved bit that no extension uses causes close 1002 (RFC 6455, section " +
			"5.2)",
		Run: wsRSV,
	},
	{
		ID: "framing/ws-control-rules", Level: harness.Must, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a control frame that is fragmented or longer than 125 bytes causes close 1002 " +
			"(RFC 6455, section 5.5)",
		Run: wsControlRules,
	},
	{
		ID: "framing/ws-bad-utf8", Level: harness.Must, Subject: harness.Client, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule:  "a text message that is not UTF-8 causes close 1007 (RFC 6455, section 8.1)",
		Needs: harness.InProcess, Run: wsBadUTF8,
	},
	{
		ID: "framing/field-order-free", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client accepts the members of an event in any order, and ignores unknown " +
			"ones (RFC 8259, section 4)",
		Needs: harness.InProcess, Run: fieldOrderFree,
	},
}
