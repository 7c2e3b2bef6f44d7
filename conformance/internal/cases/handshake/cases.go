// Package handshake has the conformance cases about the request that opens a watch, the
// response to it, and content negotiation.
package handshake

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the handshake of a watch, and content negotiation.
var Cases = []harness.Case{
	{
		ID: "handshake/h1-chunked", Level: harness.Must, Subject: harness.Server, Transports: "h1", Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch over HTTP/1.1 gets 200 with Transfer-Encoding: chunked and no " +
			"Content-Length (RFC 9112 6.1, 7.1)",
		Needs: harness.Writes, Run: h1Chunked,
	},
	{
		ID: "handshake/h2-headers", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "the response to a watch over HTTP/2 has no Transfer-Encoding, Connection or " +
			"Keep-Alive (RFC 9113 8.2.2)",
		Run: h2Headers,
	},
	{
		ID: "handshake/headers-before-events", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "the response headers of an idle collection arrive before any event",
		Needs: harness.Writes, Run: headersBeforeEvents,
	},
	{
		ID: "handshake/content-type", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "each framing has its exact media type; the one of JSON has no parameters",
		Run:  contentType,
	},
	{
		ID: "handshake/alpn", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "over TLS an offer of h2 selects HTTP/2; an offer of http/1.1, or none, " +
			"selects HTTP/1.1 (RFC 7301 3.2, RFC 9113 3.2)",
		Setup: harness.Setup{TLS: true},
		Needs: harness.Writes | harness.Configurable, Run: alpn,
	},
	{
		ID: "handshake/h2c-prior-knowledge", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "without TLS the connection preface starts HTTP/2 (RFC 9113 3.3)",
		Needs: harness.Writes, Run: h2cPriorKnowledge,
	},
	{
		ID: "handshake/h2c-upgrade-ignored", Level: harness.Should, Subject: harness.Server, Transports: "h1", Modes: []harness.Mode{harness.RealTime},
		Rule: "the server ignores Upgrade: h2c and serves the watch over HTTP/1.1 (RFC 9113 " +
			"3.1)",
		Needs: harness.Writes, Run: h2cUpgradeIgnored,
	},
	{
		ID: "handshake/ws-accept", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "the sample key of the RFC gets s3pPLMBiTxaQ9kYGzzhZRbK+xOo= (RFC 6455 4.2.2)",
		Run:  wsAccept,
	},
	{
		ID: "handshake/ws-connection-list", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "Connection and Upgrade are lists of tokens without regard to case (RFC 6455 " +
			"4.2.1)",
		Run: wsConnectionList,
	},
	{
		ID: "handshake/ws-version", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a version other than 13 is refused with Sec-WebSocket-Version: 13 (RFC 6455 " +
			"4.4)",
		Run: wsVersion,
	},
	{
		ID: "handshake/ws-no-key", Level: harness.Must, Subject: harness.Server, Transports: "ws", Applies: hasKey, Modes: []harness.Mode{harness.RealTime},
		Rule: "a handshake without a key gets 400 (RFC 6455 4.2.1)",
		Run:  wsNoKey,
	},
	{
		ID: "handshake/ws-bad-key", Level: harness.Must, Subject: harness.Server, Transports: "ws", Applies: hasKey, Modes: []harness.Mode{harness.RealTime},
		Rule: "a key that is not 16 bytes in base64 gets 400 (RFC 6455 4.2.1)",
		Run:  wsBadKey,
	},
	{
		ID: "handshake/ws-not-get", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a handshake with a method other than GET does not get 101 (RFC 6455 4.1)",
		Run:  wsNotGet,
	},
	{
		ID: "handshake/ws-subprotocol-unknown", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "if a client offers only unknown subprotocols, the response selects none (RFC " +
			"6455 4.2.2)",
		Run: wsSubprotocolUnknown,
	},
	{
		ID: "handshake/ws-subprotocol-chosen", Level: harness.Must, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "the server selects a subprotocol that it knows even if it is offered second " +
			"(RFC 6455 4.2.2)",
		Needs: harness.Writes, Run: wsSubprotocolChosen,
	},
	{
		ID: "handshake/ws-over-h2", Level: harness.Promise, Subject: harness.Server, Transports: "ws", Applies: harness.Variant.OpensOverHTTP2, Modes: []harness.Mode{harness.RealTime},
		Rule: "a server that announces it accepts a WebSocket over HTTP/2 with 200 and without " +
			"Sec-WebSocket-Accept, and refuses other protocols with 501 (RFC 8441 5, RFC 9220 3)",
		Needs: harness.InProcess, Run: wsOverH2,
	},
	{
		ID: "handshake/ws-client-checks-accept", Level: harness.Must, Subject: harness.Client, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a client rejects a response with a wrong Sec-WebSocket-Accept (RFC 6455 " +
			"4.1)",
		CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
	},
	{
		ID: "handshake/ws-client-checks-unasked", Level: harness.Must, Subject: harness.Client, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a client rejects a subprotocol or an extension that it has not offered " +
			"(RFC 6455 4.1)",
		CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
	},
	{
		ID: "handshake/error-before-upgrade", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a bad WebSocket request gets a plain HTTP error with a Status (RFC 6455 4.2.2)",
		Run:  errorBeforeUpgrade,
	},
	{
		ID: "handshake/accept-default", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "no Accept, */* and application/* select JSON (RFC 9110 12.5.1)",
		Needs: harness.Writes, Run: acceptDefault,
	},
	{
		ID: "handshake/accept-406", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an Accept header without an available type gets 406 with a Status (RFC 9110 " +
			"15.5.7)",
		Run: accept406,
	},
	{
		ID: "handshake/accept-q", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "weights in Accept take precedence over order (RFC 9110 12.4.2)",
		Run:  acceptQ,
	},
	{
		ID: "handshake/accept-q0", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "application/json;q=0 never selects JSON (RFC 9110 12.4.2)",
		Run:  acceptQ0,
	},
	{
		ID: "handshake/method-405", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "a watch with HEAD, PUT or similar gets 405 with Allow (RFC 9110 15.5.6)",
		Needs: harness.KubernetesPaths, Run: method405,
	},
	{
		ID: "handshake/watch-values", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "watch=1, true, yes or without a value watches, 0 and false list, and anything " +
			"else gets 400",
		Run: watchValues,
	},
	{
		ID: "handshake/fallback", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client with several transports uses the next one if a server refuses the " +
			"first, and sees the same events",
		Needs: harness.Writes | harness.InProcess, Run: fallback,
	},
}
