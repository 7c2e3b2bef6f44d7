// Package limit has the conformance cases about limits and hostile peers.
package limit

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check limits, and that servers and clients withstand hostile peers.
var Cases = []harness.Case{
	{
		ID: "limit/h1-header-bytes", Transports: "h1", Run: h1HeaderBytes,
		Rule: "1 MiB of headers gets 431, and the server survives (RFC 6585, section 5)",
	},
	{
		ID: "limit/uri-long", Run: uriLong,
		Rule: "a selector of 20 kB gets 4xx, and the server survives (RFC 9110, section 15.5.15)",
	},
	{
		ID: "limit/smuggling", Transports: "h1", Run: smuggling,
		Rule: "an ambiguous request gets 400, or is read as RFC 9112 specifies, and is the last on its connection " +
			"(sections 6.1 and 11.2)",
	},
	{
		ID: "limit/slowloris", Transports: "h1", Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: slowloris,
		Rule: "a client that sends its headers very slowly is cut off, and other clients are not affected",
	},
	{
		ID: "limit/h2-rapid-reset", Transports: "h2", Needs: harness.OwnCollection, Run: h2RapidReset,
		Rule: "3,000 requests that are reset at once, or 10,000 SETTINGS or PING frames, close their connection or " +
			"are processed; other clients are not affected (CVE-2023-44487)",
	},
	{
		ID: "limit/h2-continuation-flood", Transports: "h2", Run: h2ContinuationFlood,
		Rule: "endless headers close their connection (CVE-2023-45288)",
	},
	{
		ID: "limit/h2-concurrent-streams", Subject: harness.Both, Transports: "h2", Needs: harness.OwnCollection,
		Run: h2ConcurrentStreams,
		Rule: "a stream beyond SETTINGS_MAX_CONCURRENT_STREAMS is refused, and a client opens another connection " +
			"(RFC 9113, section 5.1.2)",
	},
	{
		ID: "limit/h2spec", Transports: "h2", CoveredBy: "lives in interop/h2spec TestHTTP2AsSpecified",
		Rule: "the server passes the tests of h2spec for HTTP/2 and HPACK (RFC 7540, RFC 7541)",
	},
	{
		ID: "limit/ws-client-talks", Transports: "ws", Needs: harness.OwnCollection, Run: wsClientTalks,
		Rule: "a few messages from a client are ignored, because pages send some to keep their connections alive",
	},
	{
		ID: "limit/ws-client-floods", Transports: "ws", Run: wsClientFloods,
		Rule: "a message of 16 MiB from a client closes the connection with 1009, and 100,000 small ones with 1008 " +
			"(RFC 6455, sections 7.4.1 and 10.4)",
	},
	{
		ID: "limit/ws-ping-flood", Level: harness.Promise, Transports: "ws", Needs: harness.OwnCollection,
		Run:  wsPingFlood,
		Rule: "the server answers some of 10,000 pings, and events arrive in between (RFC 6455, section 5.5.3)",
	},
	{
		ID: "limit/max-watches", Level: harness.Promise, Needs: harness.Configurable | harness.UnrelatedCollection,
		Run: maxWatches,
		Rule: "a watch beyond the limit of a client or of the server gets 429 with Retry-After, before the stream " +
			"starts (RFC 6585, section 4)",
	},
	{
		ID: "limit/event-too-big-client", Subject: harness.Client, Needs: harness.InProcess, Run: eventTooBigClient,
		Rule: "an event beyond the client's limit is an error, and the client does not read it to its end",
	},
	{
		ID: "limit/json-depth", Subject: harness.Client, Needs: harness.InProcess, Run: jsonDepth,
		Rule: "100,000 nested arrays are rejected (RFC 8259, section 9)",
	},
	{
		ID: "limit/bomb", Subject: harness.Client, RunsAlone: true, Needs: harness.InProcess, Run: decompressionBomb,
		Rule: "a client stops reading 1 GiB of compressed zeros at its limit (RFC 7692, section 8)",
	},
	{
		ID: "limit/redirect", Subject: harness.Client, Needs: harness.InProcess, Run: redirect,
		Rule: "a redirect to another host drops the credentials, a client follows at most ten, and a WebSocket " +
			"follows none (RFC 9110, section 15.4)",
	},
	{
		ID: "limit/fuzz-decoders", Level: harness.Promise, Subject: harness.Both,
		CoveredBy: "lives in framing FuzzJSON",
		Rule:      "no input makes a decoder panic or allocate without bound",
	},
}
