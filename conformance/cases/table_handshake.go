package cases

// handshakeCases are those of handshake and negotiation.
var handshakeCases = []Case{
	{
		ID: "handshake/h1-chunked", Level: Must, Subject: Server, Transports: "h1", Mode: "r",
		Rule:  "a watch over HTTP/1.1 is answered 200 with Transfer-Encoding: chunked and no Content-Length (RFC 9112 6.1, 7.1)",
		needs: Writes, run: h1Chunked,
	},
	{
		ID: "handshake/h2-headers", Level: Must, Subject: Server, Transports: "h2", Mode: "r",
		Rule: "a watch over HTTP/2 is answered without Transfer-Encoding, Connection and Keep-Alive (RFC 9113 8.2.2)",
		run:  h2Headers,
	},
	{
		ID: "handshake/headers-before-events", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "of an idle collection the response headers arrive before any event",
		needs: Writes, run: headersBeforeEvents,
	},
	{
		ID: "handshake/content-type", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule: "each framing has its exact media type, that of JSON without parameters",
		run:  contentType,
	},
	{
		ID: "handshake/alpn", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "over TLS an offer of h2 gives HTTP/2, one of http/1.1 or none at all HTTP/1.1 (RFC 7301 3.2, RFC 9113 3.2)",
		setup: Setup{TLS: true},
		needs: Writes | Configurable, run: alpn,
	},
	{
		ID: "handshake/h2c-prior-knowledge", Level: Must, Subject: Server, Transports: "h2", Mode: "r",
		Rule:  "the preface in clear text begins HTTP/2 (RFC 9113 3.3)",
		needs: Writes, run: h2cPriorKnowledge,
	},
	{
		ID: "handshake/h2c-upgrade-ignored", Level: Should, Subject: Server, Transports: "h1", Mode: "r",
		Rule:  "Upgrade: h2c is ignored: the answer is a watch over HTTP/1.1 (RFC 9113 3.1)",
		needs: Writes, run: h2cUpgradeIgnored,
	},
	{
		ID: "handshake/ws-accept", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "the sample key is answered s3pPLMBiTxaQ9kYGzzhZRbK+xOo= (RFC 6455 4.2.2)",
		run:  wsAccept,
	},
	{
		ID: "handshake/ws-connection-list", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "Connection and Upgrade are lists of tokens in any case (RFC 6455 4.2.1)",
		run:  wsConnectionList,
	},
	{
		ID: "handshake/ws-version", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a version other than 13 is refused with Sec-WebSocket-Version: 13 (RFC 6455 4.4)",
		run:  wsVersion,
	},
	{
		ID: "handshake/ws-no-key", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a handshake without a key is answered 400 (RFC 6455 4.2.1)",
		run:  wsNoKey,
	},
	{
		ID: "handshake/ws-bad-key", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a key that is not 16 bytes in base64 is answered 400 (RFC 6455 4.2.1)",
		run:  wsBadKey,
	},
	{
		ID: "handshake/ws-not-get", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a handshake by another method than GET is not answered 101 (RFC 6455 4.1)",
		run:  wsNotGet,
	},
	{
		ID: "handshake/ws-subprotocol-unknown", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "of unknown subprotocols none is chosen: the header is absent (RFC 6455 4.2.2)",
		run:  wsSubprotocolUnknown,
	},
	{
		ID: "handshake/ws-subprotocol-chosen", Level: Must, Subject: Both, Transports: "ws", Mode: "r",
		Rule:  "a subprotocol of ours is chosen also where it is offered second (RFC 6455 4.2.2)",
		needs: Writes, run: wsSubprotocolChosen,
	},
	{
		ID: "handshake/ws-client-checks-accept", Level: Must, Subject: Client, Transports: "ws", Mode: "r",
		Rule:      "a client refuses an answer with the wrong Sec-WebSocket-Accept (RFC 6455 4.1)",
		CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
	},
	{
		ID: "handshake/ws-client-checks-unasked", Level: Must, Subject: Client, Transports: "ws", Mode: "r",
		Rule:      "a client refuses a subprotocol or an extension that it has not offered (RFC 6455 4.1)",
		CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
	},
	{
		ID: "handshake/error-before-upgrade", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a bad request for a WebSocket is answered by a plain HTTP error with a Status (RFC 6455 4.2.2)",
		run:  errorBeforeUpgrade,
	},
	{
		ID: "handshake/accept-default", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "no Accept, */* and application/* give JSON (RFC 9110 12.5.1)",
		needs: Writes, run: acceptDefault,
	},
	{
		ID: "handshake/accept-406", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "an Accept that allows nothing there is is answered 406 with a Status (RFC 9110 15.5.7)",
		run:  accept406,
	},
	{
		ID: "handshake/accept-q", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "the weights of Accept count before its order (RFC 9110 12.4.2)",
		run:  acceptQ,
	},
	{
		ID: "handshake/accept-q0", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "application/json;q=0 never gives JSON (RFC 9110 12.4.2)",
		run:  acceptQ0,
	},
	{
		ID: "handshake/method-405", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "a watch by HEAD, PUT or the like is answered 405 with Allow (RFC 9110 15.5.6)",
		needs: KubernetesPaths, run: method405,
	},
	{
		ID: "handshake/watch-values", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule: "watch=1, true, yes or empty streams, 0 and false list, anything else is answered 400",
		run:  watchValues,
	},
	{
		ID: "handshake/fallback", Level: Promise, Subject: Client, Transports: all, Mode: "r",
		Rule:  "a client that may use several transports falls to the next where a server refuses one, and sees the same events",
		needs: Writes | InProcess, run: fallback,
	},
}
