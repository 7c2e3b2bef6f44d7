// Package limit has the conformance cases about limits and hostile peers.
package limit

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check limits, and that servers and clients withstand hostile peers.
var Cases = []harness.Case{
	harness.Rule("limit/h1-header-bytes", "1 MiB of headers gets 431, and the server survives (RFC 6585, section 5)",
		harness.Case{Transports: "h1", Run: h1HeaderBytes}),
	harness.Rule("limit/uri-long", "a selector of 20 kB gets 4xx, and the server survives (RFC 9110, section 15.5.15)",
		harness.Case{Run: uriLong}),
	harness.Rule("limit/smuggling",
		"an ambiguous request gets 400, or is read as RFC 9112 specifies, and is the last on its connection (sections "+
			"6.1 and 11.2)",
		harness.Case{Transports: "h1", Run: smuggling}),
	harness.Rule("limit/slowloris",
		"a client that sends its headers very slowly is cut off, and other clients are not affected",
		harness.Case{Transports: "h1", Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: slowloris}),
	harness.Rule("limit/h2-rapid-reset",
		"3,000 requests that are reset at once, or 10,000 SETTINGS or PING frames, close their connection or are "+
			"processed; other clients are not affected (CVE-2023-44487)",
		harness.Case{Transports: "h2", Needs: harness.OwnCollection, Run: h2RapidReset}),
	harness.Rule("limit/h2-continuation-flood", "endless headers close their connection (CVE-2023-45288)",
		harness.Case{Transports: "h2", Run: h2ContinuationFlood}),
	harness.Rule("limit/h2-concurrent-streams",
		"a stream beyond SETTINGS_MAX_CONCURRENT_STREAMS is refused, and a client opens another connection (RFC 9113, "+
			"section 5.1.2)",
		harness.Case{Subject: harness.Both, Transports: "h2", Needs: harness.OwnCollection, Run: h2ConcurrentStreams}),
	harness.Rule("limit/h2spec", "the server passes the tests of h2spec for HTTP/2 and HPACK (RFC 7540, RFC 7541)",
		harness.Case{Transports: "h2", CoveredBy: "lives in interop/h2spec TestHTTP2AsSpecified"}),
	harness.Rule("limit/ws-client-talks",
		"a few messages from a client are ignored, because pages send some to keep their connections alive",
		harness.Case{Transports: "ws", Needs: harness.OwnCollection, Run: wsClientTalks}),
	harness.Rule("limit/ws-client-floods",
		"a message of 16 MiB from a client closes the connection with 1009, and 100,000 small ones with 1008 (RFC "+
			"6455, sections 7.4.1 and 10.4)",
		harness.Case{Transports: "ws", Run: wsClientFloods}),
	harness.Rule("limit/ws-ping-flood",
		"the server answers some of 10,000 pings, and events arrive in between (RFC 6455, section 5.5.3)",
		harness.Case{Strength: harness.Promise, Transports: "ws", Needs: harness.OwnCollection, Run: wsPingFlood}),
	harness.Rule("limit/max-watches",
		"a watch beyond the limit of a client or of the server gets 429 with Retry-After, before the stream starts "+
			"(RFC 6585, section 4)", harness.Case{
			Strength: harness.Promise, Needs: harness.Configurable | harness.UnrelatedCollection, Run: maxWatches,
		}),
	harness.Rule("limit/event-too-big-client",
		"an event beyond the client's limit is an error, and the client does not read it to its end",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: eventTooBigClient}),
	harness.Rule("limit/json-depth", "100,000 nested arrays are rejected (RFC 8259, section 9)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: jsonDepth}),
	harness.Rule("limit/bomb", "a client stops reading 1 GiB of compressed zeros at its limit (RFC 7692, section 8)",
		harness.Case{Subject: harness.Client, RunsAlone: true, Needs: harness.InProcess, Run: decompressionBomb}),
	harness.Rule("limit/redirect",
		"a client follows up to ten redirects, and sends Authorization and Cookie to no other host; a WebSocket "+
			"follows none (RFC 9110, section 15.4)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: redirect}),
	harness.Rule("limit/redirect-headers",
		"after a redirect to another host a client sends none of its caller's headers, because each may be a "+
			"credential",
		harness.Case{
			Strength: harness.Should, Subject: harness.Client, Transports: "h1 h2", Needs: harness.InProcess,
			Run: redirectHeaders,
		}),
	harness.Rule("limit/fuzz-decoders", "no input makes a decoder panic or allocate without bound",
		harness.Case{Strength: harness.Promise, Subject: harness.Both, CoveredBy: "lives in framing FuzzJSON"}),
}
