// Package handshake has the conformance cases about the request that opens a watch, the
// response to it, and content negotiation.
package handshake

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the handshake of a watch, and content negotiation.
var Cases = []harness.Case{
	harness.Rule("handshake/h1-chunked",
		"a watch over HTTP/1.1 gets 200 with Transfer-Encoding: chunked and no Content-Length (RFC 9112 6.1, 7.1)",
		harness.Case{Transports: "h1", Needs: harness.Writes, Run: h1Chunked}),
	harness.Rule("handshake/h2-headers",
		"the response to a watch over HTTP/2 has no Transfer-Encoding, Connection or Keep-Alive (RFC 9113 8.2.2)",
		harness.Case{Transports: "h2", Run: h2Headers}),
	harness.Rule("handshake/headers-before-events",
		"the response headers of an idle collection arrive before any event",
		harness.Case{Transports: "h1 h2", Needs: harness.Writes, Run: headersBeforeEvents}),
	harness.Rule("handshake/content-type", "each framing has its exact media type; the one of JSON has no parameters",
		harness.Case{Transports: "h1 h2", Run: contentType}),
	harness.Rule("handshake/alpn",
		"over TLS an offer of h2 selects HTTP/2; an offer of http/1.1, or none, selects HTTP/1.1 (RFC 7301 3.2, RFC "+
			"9113 3.2)", harness.Case{
			Transports: "h1 h2", Needs: harness.Writes | harness.Configurable, Setup: harness.Setup{TLS: true},
			Run: alpn,
		}),
	harness.Rule("handshake/h2c-prior-knowledge", "without TLS the connection preface starts HTTP/2 (RFC 9113 3.3)",
		harness.Case{Transports: "h2", Needs: harness.Writes, Run: h2cPriorKnowledge}),
	harness.Rule("handshake/h2c-upgrade-ignored",
		"the server ignores Upgrade: h2c and serves the watch over HTTP/1.1 (RFC 9113 3.1)",
		harness.Case{Level: harness.Should, Transports: "h1", Needs: harness.Writes, Run: h2cUpgradeIgnored}),
	harness.Rule("handshake/ws-accept", "the sample key of the RFC gets s3pPLMBiTxaQ9kYGzzhZRbK+xOo= (RFC 6455 4.2.2)",
		harness.Case{Transports: "ws", Run: wsAccept}),
	harness.Rule("handshake/ws-connection-list",
		"Connection and Upgrade are lists of tokens without regard to case (RFC 6455 4.2.1)",
		harness.Case{Transports: "ws", Run: wsConnectionList}),
	harness.Rule("handshake/ws-version",
		"a version other than 13 is refused with Sec-WebSocket-Version: 13 (RFC 6455 4.4)",
		harness.Case{Transports: "ws", Run: wsVersion}),
	harness.Rule("handshake/ws-no-key", "a handshake without a key gets 400 (RFC 6455 4.2.1)",
		harness.Case{Transports: "ws", Applies: hasKey, Run: wsNoKey}),
	harness.Rule("handshake/ws-bad-key", "a key that is not 16 bytes in base64 gets 400 (RFC 6455 4.2.1)",
		harness.Case{Transports: "ws", Applies: hasKey, Run: wsBadKey}),
	harness.Rule("handshake/ws-not-get", "a handshake with a method other than GET does not get 101 (RFC 6455 4.1)",
		harness.Case{Transports: "ws", Run: wsNotGet}),
	harness.Rule("handshake/ws-subprotocol-unknown",
		"if a client offers only unknown subprotocols, the response selects none (RFC 6455 4.2.2)",
		harness.Case{Transports: "ws", Run: wsSubprotocolUnknown}),
	harness.Rule("handshake/ws-subprotocol-chosen",
		"the server selects a subprotocol that it knows even if it is offered second (RFC 6455 4.2.2)",
		harness.Case{Subject: harness.Both, Transports: "ws", Needs: harness.Writes, Run: wsSubprotocolChosen}),
	harness.Rule("handshake/ws-over-h2",
		"a server that announces it accepts a WebSocket over HTTP/2 with 200 and without Sec-WebSocket-Accept, and "+
			"refuses other protocols with 501 (RFC 8441 5, RFC 9220 3)", harness.Case{
			Level: harness.Promise, Transports: "ws", Applies: harness.Variant.OpensOverHTTP2, Needs: harness.InProcess,
			Run: wsOverH2,
		}),
	harness.Rule("handshake/ws-client-checks-accept",
		"a client rejects a response with a wrong Sec-WebSocket-Accept (RFC 6455 4.1)", harness.Case{
			Subject: harness.Client, Transports: "ws",
			CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
		}),
	harness.Rule("handshake/ws-client-checks-unasked",
		"a client rejects a subprotocol or an extension that it has not offered (RFC 6455 4.1)", harness.Case{
			Subject: harness.Client, Transports: "ws",
			CoveredBy: "lives in transport/websocket TestClientRejectsABadResponse",
		}),
	harness.Rule("handshake/error-before-upgrade",
		"a bad WebSocket request gets a plain HTTP error with a Status (RFC 6455 4.2.2)",
		harness.Case{Transports: "ws", Run: errorBeforeUpgrade}),
	harness.Rule("handshake/accept-default", "no Accept, */* and application/* select JSON (RFC 9110 12.5.1)",
		harness.Case{Needs: harness.Writes, Run: acceptDefault}),
	harness.Rule("handshake/accept-406",
		"an Accept header without an available type gets 406 with a Status (RFC 9110 15.5.7)",
		harness.Case{Run: accept406}),
	harness.Rule("handshake/accept-unknown",
		"unknown parameters of an available type, such as drop (KEP-5958), do not make it unavailable",
		harness.Case{Needs: harness.Writes, Run: acceptUnknown}),
	harness.Rule("handshake/accept-q", "weights in Accept take precedence over order (RFC 9110 12.4.2)",
		harness.Case{Run: acceptQ}),
	harness.Rule("handshake/accept-q0", "application/json;q=0 never selects JSON (RFC 9110 12.4.2)",
		harness.Case{Run: acceptQ0}),
	harness.Rule("handshake/method-405", "a watch with HEAD, PUT or similar gets 405 with Allow (RFC 9110 15.5.6)",
		harness.Case{Transports: "h1 h2", Needs: harness.KubernetesPaths, Run: method405}),
	harness.Rule("handshake/watch-values",
		"watch=1, true, yes or without a value watches, 0 and false list, and anything else gets 400",
		harness.Case{Level: harness.Promise, Run: watchValues}),
	harness.Rule("handshake/fallback",
		"a client with several transports uses the next one if a server refuses the first, and sees the same events",
		harness.Case{
			Level: harness.Promise, Subject: harness.Client, Needs: harness.Writes | harness.InProcess, Run: fallback,
		}),
}
