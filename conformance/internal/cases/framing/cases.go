// Package framing has the conformance cases about the framings of a stream: JSON lines,
// length-prefixed JSON, JSON text sequences, CBOR sequences, server-sent events and
// WebSocket messages.
package framing

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check how servers encode events as bytes, and how clients decode them.
var Cases = []harness.Case{
	harness.Rule("framing/ndjson-lines",
		"in JSON each event is one object on one line that ends with one newline (Kubernetes' framing)",
		harness.Case{Transports: "h1 h2", Needs: harness.OwnCollection, Run: ndjsonLines}),
	harness.Rule("framing/json-stream-decoder",
		"a client finds the end of a JSON object by its brackets: without newlines, with spaces, or with two events "+
			"in one read",
		harness.Case{Subject: harness.Client, Transports: "h1 h2", Needs: harness.InProcess, Run: jsonStreamDecoder}),
	harness.Rule("framing/byte-drip", "the boundaries of reads do not matter: byte by byte, and split at every point",
		harness.Case{Subject: harness.Both, Mode: harness.EitherTime, Needs: harness.InProcess, Run: byteDrip}),
	harness.Rule("framing/coalesced", "several events in one segment are all delivered, in order",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: coalesced}),
	harness.Rule("framing/chunk-boundaries-free",
		"chunks may end anywhere, within a character and within a number (RFC 9112, section 7.1)", harness.Case{
			Subject: harness.Client, Transports: "h1", Mode: harness.EitherTime, Needs: harness.InProcess,
			Run: chunkBoundariesFree,
		}),
	harness.Rule("framing/chunk-ext-trailers",
		"a client ignores chunk extensions and trailers (RFC 9112, sections 7.1.1 and 7.1.2)",
		harness.Case{Subject: harness.Client, Transports: "h1", Needs: harness.InProcess, Run: chunkExtTrailers}),
	harness.Rule("framing/truncated-final",
		"a client reports a stream that ends within an event as truncated, and resumes before that event (RFC 9112, "+
			"section 8)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: truncatedFinal}),
	harness.Rule("framing/clean-end-vs-abort",
		"a client distinguishes a last chunk, END_STREAM or close 1000 from a broken stream (RFC 9112, section 8; RFC "+
			"9113, section 8.1; RFC 6455, section 7.1.5)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: cleanEndVsAbort}),
	harness.Rule("framing/len-prefix",
		"in length-prefixed JSON a four-byte big-endian length precedes each event (Kubernetes' length-delimited "+
			"frames)",
		harness.Case{Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: lenPrefix}),
	harness.Rule("framing/len-prefix-zero", "a frame of length zero is an error, or is ignored", harness.Case{
		Strength: harness.Promise, Subject: harness.Client, Transports: "h1 h2", Needs: harness.InProcess,
		Run: lenPrefixZero,
	}),
	harness.Rule("framing/len-prefix-huge", "a client rejects a length beyond its limit before it allocates memory",
		harness.Case{
			Subject: harness.Client, Transports: "h1 h2", RunsAlone: true, Needs: harness.InProcess, Run: lenPrefixHuge,
		}),
	harness.Rule("framing/json-seq",
		"in a JSON text sequence each event is RS, an object and LF, and a truncated one is reported (RFC 7464, "+
			"sections 2.1 to 2.4)",
		harness.Case{Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: jsonSeq}),
	harness.Rule("framing/cbor-seq",
		"application/cbor-seq is a sequence of CBOR items with the same content as the JSON (RFC 8742)",
		harness.Case{Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: cborSeq}),
	harness.Rule("framing/sse-fields",
		"a server-sent event has id, event and data lines and ends with a blank line; the id is the resourceVersion "+
			"(HTML, sections 9.2.5 and 9.2.6)",
		harness.Case{Subject: harness.Both, Transports: "h1 h2", Needs: harness.OwnCollection, Run: sseFields}),
	harness.Rule("framing/sse-parse-vectors",
		"a client parses server-sent events as HTML specifies (section 9.2.6; web-platform-tests eventsource/format-*)",
		harness.Case{
			Subject: harness.Client, Transports: "h1 h2", Mode: harness.FakeTime, Needs: harness.InProcess,
			Run: sseParseVectors,
		}),
	harness.Rule("framing/sse-newline-in-data",
		"a line break in an object never breaks a data line of a server-sent event",
		harness.Case{Transports: "h1 h2", Needs: harness.OwnCollection, Run: sseNewlineInData}),
	harness.Rule("framing/sse-content-type",
		"server-sent events are text/event-stream with Cache-Control: no-cache; a client rejects another type (HTML, "+
			"section 9.2.3)",
		harness.Case{Subject: harness.Both, Transports: "h1 h2", Run: sseContentType}),
	harness.Rule("framing/sse-204", "after 204 a client of server-sent events does not reconnect (HTML, section 9.2.3)",
		harness.Case{Subject: harness.Client, Transports: "h1 h2", Needs: harness.InProcess, Run: sse204}),
	harness.Rule("framing/ws-one-message-one-event",
		"over WebSocket each message is one event (Kubernetes' websocket framing)",
		harness.Case{Transports: "ws", Needs: harness.OwnCollection, Run: wsOneMessageOneEvent}),
	harness.Rule("framing/ws-opcode",
		"JSON is sent in text messages, binary framings in binary messages (RFC 6455, section 5.6)",
		harness.Case{Transports: "ws", Needs: harness.Writes, Run: wsOpcode}),
	harness.Rule("framing/ws-fragmented-in",
		"a fragmented event with a ping in between is one event, and the ping is answered (RFC 6455, sections 5.4 and "+
			"5.5.2)",
		harness.Case{Subject: harness.Client, Transports: "ws", Needs: harness.InProcess, Run: wsFragmentedIn}),
	harness.Rule("framing/ws-unmasked-server",
		"client frames are masked and server frames are not; either end closes with 1002 otherwise (RFC 6455, section "+
			"5.1)",
		harness.Case{Subject: harness.Both, Transports: "ws", Needs: harness.Writes, Run: wsUnmaskedServer}),
	harness.Rule("framing/ws-rsv", "a reserved bit that no extension uses causes close 1002 (RFC 6455, section 5.2)",
		harness.Case{Subject: harness.Both, Transports: "ws", Run: wsRSV}),
	harness.Rule("framing/ws-control-rules",
		"a control frame that is fragmented or longer than 125 bytes causes close 1002 (RFC 6455, section 5.5)",
		harness.Case{Subject: harness.Both, Transports: "ws", Run: wsControlRules}),
	harness.Rule("framing/ws-bad-utf8", "a text message that is not UTF-8 causes close 1007 (RFC 6455, section 8.1)",
		harness.Case{Subject: harness.Client, Transports: "ws", Needs: harness.InProcess, Run: wsBadUTF8}),
	harness.Rule("framing/field-order-free",
		"a client accepts the members of an event in any order, and ignores unknown ones (RFC 8259, section 4)",
		harness.Case{Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess, Run: fieldOrderFree}),
}
