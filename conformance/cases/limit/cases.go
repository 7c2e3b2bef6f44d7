// Package limit has the cases about limits and hostile peers.
package limit

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of limits, and of peers that mean harm.
var Cases = []harness.Case{
	{
		ID: "limit/h1-header-bytes", Level: harness.Must, Subject: harness.Server, Transports: "h1", Mode: "r",
		Rule: "1 MiB of headers is answered 431, and the server lives on (RFC 6585, section 5)",
		Run:  h1HeaderBytes,
	},
	{
		ID: "limit/uri-long", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule: "a selector of 20 kB is answered 4xx, and the server lives on (RFC 9110, section 15.5.15)",
		Run:  uriLong,
	},
	{
		ID: "limit/smuggling", Level: harness.Must, Subject: harness.Server, Transports: "h1", Mode: "r",
		Rule: "a request that can be read in two ways is answered 400, or as RFC 9112 says, and is the last on its connection (sections 6.1 and 11.2)",
		Run:  smuggling,
	},
	{
		ID: "limit/slowloris", Level: harness.Must, Subject: harness.Server, Transports: "h1", Mode: "f",
		Rule:  "a client that sends its headers in drips is cut off, and others do not notice",
		Needs: harness.Writes | harness.SoleWriter, Run: slowloris,
	},
	{
		ID: "limit/h2-rapid-reset", Level: harness.Must, Subject: harness.Server, Transports: "h2", Mode: "r",
		Rule:  "10,000 requests that are reset at once, or as many SETTINGS and PING, close their connection or are worked off; other clients do not notice (CVE-2023-44487)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2RapidReset,
	},
	{
		ID: "limit/h2-continuation-flood", Level: harness.Must, Subject: harness.Server, Transports: "h2", Mode: "r",
		Rule: "headers without end close their connection (CVE-2023-45288)",
		Run:  h2ContinuationFlood,
	},
	{
		ID: "limit/h2-concurrent-streams", Level: harness.Must, Subject: harness.Both, Transports: "h2", Mode: "r",
		Rule:  "a stream beyond SETTINGS_MAX_CONCURRENT_STREAMS is refused, and a client opens another connection (RFC 9113, section 5.1.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2ConcurrentStreams,
	},
	{
		ID: "limit/h2spec", Level: harness.Must, Subject: harness.Server, Transports: "h2", Mode: "r",
		Rule:      "the server does what h2spec asks of HTTP/2 and HPACK (RFC 7540, RFC 7541)",
		CoveredBy: "lives in interop/h2spec TestHTTP2AsSpecified",
	},
	{
		ID: "limit/ws-client-talks", Level: harness.Must, Subject: harness.Server, Transports: "ws", Mode: "r",
		Rule:  "what a client says is passed over or closes with 1008, and 16 MiB of it with 1009 (RFC 6455, sections 7.4.1 and 10.4)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsClientTalks,
	},
	{
		ID: "limit/ws-ping-flood", Level: harness.Promise, Subject: harness.Server, Transports: "ws", Mode: "r",
		Rule:  "10,000 pings are answered, though not each, and events come between (RFC 6455, section 5.5.3)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsPingFlood,
	},
	{
		ID: "limit/max-watches", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch beyond the limit, of a client or of all, is answered 429 with Retry-After, before the stream (RFC 6585, section 4)",
		Needs: harness.Configurable | harness.UnrelatedCollection, Run: maxWatches,
	},
	{
		ID: "limit/event-too-big-client", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "an event beyond the client's limit is told as an error, and not read to its end",
		Needs: harness.InProcess, Run: eventTooBigClient,
	},
	{
		ID: "limit/json-depth", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "100,000 arrays within one another are refused (RFC 8259, section 9)",
		Needs: harness.InProcess, Run: jsonDepth,
	},
	{
		ID: "limit/bomb", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "1 GiB of zeros, compressed, is given up at the client's limit (RFC 7692, section 8)",
		Needs: harness.InProcess, Run: bombed, RunsAlone: true,
	},
	{
		ID: "limit/redirect", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a redirect to another host drops the credentials, ten in a row are enough, and a WebSocket follows none (RFC 9110, section 15.4)",
		Needs: harness.InProcess, Run: redirect,
	},
	{
		ID: "limit/fuzz-decoders", Level: harness.Promise, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:      "no decoder panics or takes memory without bound, whatever it is fed",
		CoveredBy: "lives in framing FuzzJSON",
	},
}
