// Package limit has the conformance cases about limits and hostile peers.
package limit

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check limits, and that servers and clients withstand hostile peers.
var Cases = []harness.Case{
	{
		ID: "limit/h1-header-bytes", Level: harness.Must, Subject: harness.Server, Transports: "h1", Modes: []harness.Mode{harness.RealTime},
		Rule: "1 MiB of headers gets 431, and the server survives (RFC 6585, section 5)",
		Run:  h1HeaderBytes,
	},
	{
		ID: "limit/uri-long", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a selector of 20 kB gets 4xx, and the server survives (RFC 9110, section " +
			"15.5.15)",
		Run: uriLong,
	},
	{
		ID: "limit/smuggling", Level: harness.Must, Subject: harness.Server, Transports: "h1", Modes: []harness.Mode{harness.RealTime},
		Rule: "an ambiguous request gets 400, or is read as RFC 9112 specifies, and is the " +
			"last on its connection (sections 6.1 and 11.2)",
		Run: smuggling,
	},
	{
		ID: "limit/slowloris", Level: harness.Must, Subject: harness.Server, Transports: "h1", Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client that sends its headers very slowly is cut off, and other clients are " +
			"not affected",
		Needs: harness.Writes | harness.SoleWriter, Run: slowloris,
	},
	{
		ID: "limit/h2-rapid-reset", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "3,000 requests that are reset at once, or 10,000 SETTINGS or PING frames, close " +
			"their connection or are processed; other clients are not affected " +
			"(CVE-2023-44487)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2RapidReset,
	},
	{
		ID: "limit/h2-continuation-flood", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "endless headers close their connection (CVE-2023-45288)",
		Run:  h2ContinuationFlood,
	},
	{
		ID: "limit/h2-concurrent-streams", Level: harness.Must, Subject: harness.Both, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "a stream beyond SETTINGS_MAX_CONCURRENT_STREAMS is refused, and a client " +
			"opens another connection (RFC 9113, section 5.1.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2ConcurrentStreams,
	},
	{
		ID: "limit/h2spec", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "the server passes the tests of h2spec for HTTP/2 and HPACK (RFC 7540, RFC " +
			"7541)",
		CoveredBy: "lives in interop/h2spec TestHTTP2AsSpecified",
	},
	{
		ID: "limit/ws-client-talks", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a few messages from a client are ignored, because pages send some to keep their " +
			"connections alive",
		Needs: harness.Writes | harness.SoleWriter, Run: wsClientTalks,
	},
	{
		ID: "limit/ws-client-floods", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a message of 16 MiB from a client closes the connection with 1009, and " +
			"100,000 small ones with 1008 (RFC 6455, sections 7.4.1 and 10.4)",
		Run: wsClientFloods,
	},
	{
		ID: "limit/ws-ping-flood", Level: harness.Promise, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "the server answers some of 10,000 pings, and events arrive in between (RFC " +
			"6455, section 5.5.3)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsPingFlood,
	},
	{
		ID: "limit/max-watches", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch beyond the limit of a client or of the server gets 429 with " +
			"Retry-After, before the stream starts (RFC 6585, section 4)",
		Needs: harness.Configurable | harness.UnrelatedCollection, Run: maxWatches,
	},
	{
		ID: "limit/event-too-big-client", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an event beyond the client's limit is an error, and the client does not read " +
			"it to its end",
		Needs: harness.InProcess, Run: eventTooBigClient,
	},
	{
		ID: "limit/json-depth", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "100,000 nested arrays are rejected (RFC 8259, section 9)",
		Needs: harness.InProcess, Run: jsonDepth,
	},
	{
		ID: "limit/bomb", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client stops reading 1 GiB of compressed zeros at its limit (RFC 7692, " +
			"section 8)",
		Needs: harness.InProcess, Run: decompressionBomb, RunsAlone: true,
	},
	{
		ID: "limit/redirect", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a redirect to another host drops the credentials, a client follows at most " +
			"ten, and a WebSocket follows none (RFC 9110, section 15.4)",
		Needs: harness.InProcess, Run: redirect,
	},
	{
		ID: "limit/fuzz-decoders", Level: harness.Promise, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:      "no input makes a decoder panic or allocate without bound",
		CoveredBy: "lives in framing FuzzJSON",
	},
}
