package cases

// limitCases are those of limits, and of peers that mean harm.
var limitCases = []Case{
	{
		ID: "limit/h1-header-bytes", Level: Must, Subject: Server, Transports: "h1", Mode: "r",
		Rule: "1 MiB of headers is answered 431, and the server lives on (RFC 6585, section 5)",
		run:  h1HeaderBytes,
	},
	{
		ID: "limit/uri-long", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "a selector of 20 kB is answered 4xx, and the server lives on (RFC 9110, section 15.5.15)",
		run:  uriLong,
	},
	{
		ID: "limit/smuggling", Level: Must, Subject: Server, Transports: "h1", Mode: "r",
		Rule: "a request that can be read in two ways is answered 400, or as RFC 9112 says, and is the last on its connection (sections 6.1 and 11.2)",
		run:  smuggling,
	},
	{
		ID: "limit/slowloris", Level: Must, Subject: Server, Transports: "h1", Mode: "f",
		Rule:  "a client that sends its headers in drips is cut off, and others do not notice",
		needs: Writes | SoleWriter, run: slowloris,
	},
	{
		ID: "limit/h2-rapid-reset", Level: Must, Subject: Server, Transports: "h2", Mode: "r",
		Rule:  "10,000 requests that are reset at once, or as many SETTINGS and PING, close their connection or are worked off; other clients do not notice (CVE-2023-44487)",
		needs: Writes | SoleWriter, run: h2RapidReset,
	},
	{
		ID: "limit/h2-continuation-flood", Level: Must, Subject: Server, Transports: "h2", Mode: "r",
		Rule: "headers without end close their connection (CVE-2023-45288)",
		run:  h2ContinuationFlood,
	},
	{
		ID: "limit/h2-concurrent-streams", Level: Must, Subject: Both, Transports: "h2", Mode: "r",
		Rule:  "a stream beyond SETTINGS_MAX_CONCURRENT_STREAMS is refused, and a client opens another connection (RFC 9113, section 5.1.2)",
		needs: Writes | SoleWriter, run: h2ConcurrentStreams,
	},
	{
		ID: "limit/h2spec", Level: Must, Subject: Server, Transports: "h2", Mode: "r",
		Rule:      "the server does what h2spec asks of HTTP/2 and HPACK (RFC 7540, RFC 7541)",
		CoveredBy: "lives in interop/h2spec TestHTTP2AsSpecified",
	},
	{
		ID: "limit/ws-client-talks", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule:  "what a client says is passed over or closes with 1008, and 16 MiB of it with 1009 (RFC 6455, sections 7.4.1 and 10.4)",
		needs: Writes | SoleWriter, run: wsClientTalks,
	},
	{
		ID: "limit/ws-ping-flood", Level: Promise, Subject: Server, Transports: "ws", Mode: "r",
		Rule:  "10,000 pings are answered, though not each, and events come between (RFC 6455, section 5.5.3)",
		needs: Writes | SoleWriter, run: wsPingFlood,
	},
	{
		ID: "limit/max-watches", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a watch beyond the limit, of a client or of all, is answered 429 with Retry-After, before the stream (RFC 6585, section 4)",
		needs: Configurable | UnrelatedCollection, run: maxWatches,
	},
	{
		ID: "limit/event-too-big-client", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "an event beyond the client's limit is told as an error, and not read to its end",
		needs: InProcess, run: eventTooBigClient,
	},
	{
		ID: "limit/json-depth", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "100,000 arrays within one another are refused (RFC 8259, section 9)",
		needs: InProcess, run: jsonDepth,
	},
	{
		ID: "limit/bomb", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "1 GiB of zeros, compressed, is given up at the client's limit (RFC 7692, section 8)",
		needs: InProcess, run: bombed, measures: true,
	},
	{
		ID: "limit/redirect", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "a redirect to another host drops the credentials, ten in a row are enough, and a WebSocket follows none (RFC 9110, section 15.4)",
		needs: InProcess, run: redirect,
	},
	{
		ID: "limit/fuzz-decoders", Level: Promise, Subject: Both, Transports: all, Mode: "r",
		Rule:      "no decoder panics or takes memory without bound, whatever it is fed",
		CoveredBy: "lives in framing FuzzJSON",
	},
}
