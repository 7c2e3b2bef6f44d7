// Package handshake has the conformance cases about the request that opens a watch, the
// response to it, and content negotiation.
package handshake

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the handshake of a watch, and content negotiation.
var Cases = []harness.Case{
	{
		ID: "handshake/h1-chunked", Transports: "h1", Needs: harness.Writes, Run: h1Chunked,
		Rule: "a watch over HTTP/1.1 gets 200 with Transfer-Encoding: chunked and no Content-Length (RFC 9112 6.1, " +
			"7.1)",
	},
	{
		ID: "handshake/h2-headers", Transports: "h2", Run: h2Headers,
		Rule: "the response to a watch over HTTP/2 has no Transfer-Encoding, Connection or Keep-Alive (RFC 9113 8.2.2)",
	},
	{
		ID: "handshake/headers-before-events", Transports: "h1 h2", Needs: harness.Writes, Run: headersBeforeEvents,
		Rule: "the response headers of an idle collection arrive before any event",
	},
	{
		ID: "handshake/content-type", Transports: "h1 h2", Run: contentType,
		Rule: "each framing has its exact media type; the one of JSON has no parameters",
	},
	{
		ID: "handshake/alpn", Transports: "h1 h2", Needs: harness.Writes | harness.Configurable,
		Setup: harness.Setup{TLS: true}, Run: alpn,
		Rule: "over TLS an offer of h2 selects HTTP/2; an offer of http/1.1, or none, selects HTTP/1.1 (RFC 7301 " +
			"3.2, RFC 9113 3.2)",
	},
	{
		ID: "handshake/h2c-prior-knowledge", Transports: "h2", Needs: harness.Writes, Run: h2cPriorKnowledge,
		Rule: "without TLS the connection preface starts HTTP/2 (RFC 9113 3.3)",
	},
	{
		ID: "handshake/h2c-upgrade-ignored", Level: harness.Should, Transports: "h1", Needs: harness.Writes,
		Run:  h2cUpgradeIgnored,
		Rule: "the server ignores Upgrade: h2c and serves the watch over HTTP/1.1 (RFC 9113 3.1)",
	},
	{
		ID: "handshake/ws-accept", Transports: "ws", Run: wsAccept,
		Rule: "the sample key of the RFC gets s3pPLMBiTxaQ9kYGzzhZRbK+xOo= (RFC 6455 4.2.2)",
	},
	{
		ID: "handshake/ws-connection-list", Transports: "ws", Run: wsConnectionList,
		Rule: "Connection and Upgrade are lists of tokens without regard to case (RFC 6455 4.2.1)",
	},
	{
		ID: "handshake/ws-version", Transports: "ws", Run: wsVersion,
		Rule: "a version other than 13 is refused with Sec-WebSocket-Version: 13 (RFC 6455 4.4)",
	},
	{
		ID: "handshake/ws-no-key", Transports: "ws", Applies: hasKey, Run: wsNoKey,
		Rule: "a handshake without a key gets 400 (RFC 6455 4.2.1)",
	},
	{
		ID: "handshake/ws-bad-key", Transports: "ws", Applies: hasKey, Run: wsBadKey,
		Rule: "a key that is not 16 bytes in base64 gets 400 (RFC 6455 4.2.1)",
	},
	{
		ID: "handshake/ws-not-get", Transports: "ws", Run: wsNotGet,
		Rule: "a handshake with a method other than GET does not get 101 (RFC 6455 4.1)",
	},
	{
		ID: "handshake/ws-subprotocol-unknown", Transports: "ws", Run: wsSubprotocolUnknown,
		Rule: "if a client offers only unknown subprotocols, the response selects none (RFC 6455 4.2.2)",
	},
	{
		ID: "handshake/ws-subprotocol-chosen", Subject: harness.Both, Transports: "ws", Needs: harness.Writes,
		Run:  wsSubprotocolChosen,
		Rule: "the server selects a subprotocol that it knows even if it is offered second (RFC 6455 4.2.2)",
	},
	{
		ID: "handshake/ws-over-h2", Level: harness.Promise, Transports: "ws", Applies: harness.Variant.OpensOverHTTP2,
		Needs: harness.InProcess, Run: wsOverH2,
		Rule: "a server that announces it accepts a WebSocket over HTTP/2 with 200 and without Sec-WebSocket-Accept, " +
			"and refuses other protocols with 501 (RFC 8441 5, RFC 9220 3)",
	},
	{
		ID: "handshake/ws-client-checks-accept", Subject: harness.Client, Transports: "ws",
		CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
		Rule:      "a client rejects a response with a wrong Sec-WebSocket-Accept (RFC 6455 4.1)",
	},
	{
		ID: "handshake/ws-client-checks-unasked", Subject: harness.Client, Transports: "ws",
		CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
		Rule:      "a client rejects a subprotocol or an extension that it has not offered (RFC 6455 4.1)",
	},
	{
		ID: "handshake/error-before-upgrade", Transports: "ws", Run: errorBeforeUpgrade,
		Rule: "a bad WebSocket request gets a plain HTTP error with a Status (RFC 6455 4.2.2)",
	},
	{
		ID: "handshake/accept-default", Needs: harness.Writes, Run: acceptDefault,
		Rule: "no Accept, */* and application/* select JSON (RFC 9110 12.5.1)",
	},
	{
		ID: "handshake/accept-406", Run: accept406,
		Rule: "an Accept header without an available type gets 406 with a Status (RFC 9110 15.5.7)",
	},
	{
		ID: "handshake/accept-q", Run: acceptQ,
		Rule: "weights in Accept take precedence over order (RFC 9110 12.4.2)",
	},
	{
		ID: "handshake/accept-q0", Run: acceptQ0,
		Rule: "application/json;q=0 never selects JSON (RFC 9110 12.4.2)",
	},
	{
		ID: "handshake/method-405", Transports: "h1 h2", Needs: harness.KubernetesPaths, Run: method405,
		Rule: "a watch with HEAD, PUT or similar gets 405 with Allow (RFC 9110 15.5.6)",
	},
	{
		ID: "handshake/watch-values", Level: harness.Promise, Run: watchValues,
		Rule: "watch=1, true, yes or without a value watches, 0 and false list, and anything else gets 400",
	},
	{
		ID: "handshake/fallback", Level: harness.Promise, Subject: harness.Client,
		Needs: harness.Writes | harness.InProcess, Run: fallback,
		Rule: "a client with several transports uses the next one if a server refuses the first, and sees the same " +
			"events",
	},
}
