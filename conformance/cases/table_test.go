package cases

// A rule is one of the protocol, and what tests it.
type rule struct {
	// id names it, for ever.
	id string
	// level is M where a server or client must, S where it should, Q where it is a promise of this module alone.
	level string
	// on are the transports it is about, and lane is r for real sockets, f for a bubble with a clock of its own.
	on, lane string
	// says is the rule in one sentence, with its authority.
	says string
	// test is the case. Where it is nil, elsewhere says where the case is, or what it still needs.
	test      func(*env)
	elsewhere string
	// with is what the case wants otherwise than usual.
	with setup
}

const all = "h1 h2 ws"

// rules are those of the groups handshake, resourceVersion, selectors and errors.
var rules = []rule{
	{
		id: "handshake/h1-chunked", level: "M", on: "h1", lane: "r", test: h1Chunked,
		says: "a watch over HTTP/1.1 is answered 200 with Transfer-Encoding: chunked and no Content-Length (RFC 9112 6.1, 7.1)",
	},
	{
		id: "handshake/h2-headers", level: "M", on: "h2", lane: "r", test: h2Headers,
		says: "a watch over HTTP/2 is answered without Transfer-Encoding, Connection and Keep-Alive (RFC 9113 8.2.2)",
	},
	{
		id: "handshake/headers-before-events", level: "M", on: "h1 h2", lane: "r", test: headersBeforeEvents,
		says: "of an idle collection the response headers arrive before any event",
	},
	{
		id: "handshake/content-type", level: "M", on: "h1 h2", lane: "r", test: contentType,
		says: "each framing has its exact media type, that of JSON without parameters",
	},
	{
		id: "handshake/alpn", level: "M", on: "h1 h2", lane: "r", test: alpn, with: setup{tls: true},
		says: "over TLS an offer of h2 gives HTTP/2, one of http/1.1 or none at all HTTP/1.1 (RFC 7301 3.2, RFC 9113 3.2)",
	},
	{
		id: "handshake/h2c-prior-knowledge", level: "M", on: "h2", lane: "r", test: h2cPriorKnowledge,
		says: "the preface in clear text begins HTTP/2 (RFC 9113 3.3)",
	},
	{
		id: "handshake/h2c-upgrade-ignored", level: "S", on: "h1", lane: "r", test: h2cUpgradeIgnored,
		says: "Upgrade: h2c is ignored: the answer is a watch over HTTP/1.1 (RFC 9113 3.1)",
	},
	{
		id: "handshake/ws-accept", level: "M", on: "ws", lane: "r", test: wsAccept,
		says: "the sample key is answered s3pPLMBiTxaQ9kYGzzhZRbK+xOo= (RFC 6455 4.2.2)",
	},
	{
		id: "handshake/ws-connection-list", level: "M", on: "ws", lane: "r", test: wsConnectionList,
		says: "Connection and Upgrade are lists of tokens in any case (RFC 6455 4.2.1)",
	},
	{
		id: "handshake/ws-version", level: "M", on: "ws", lane: "r", test: wsVersion,
		says: "a version other than 13 is refused with Sec-WebSocket-Version: 13 (RFC 6455 4.4)",
	},
	{
		id: "handshake/ws-no-key", level: "M", on: "ws", lane: "r", test: wsNoKey,
		says: "a handshake without a key is answered 400 (RFC 6455 4.2.1)",
	},
	{
		id: "handshake/ws-bad-key", level: "M", on: "ws", lane: "r", test: wsBadKey,
		says: "a key that is not 16 bytes in base64 is answered 400 (RFC 6455 4.2.1)",
	},
	{
		id: "handshake/ws-not-get", level: "M", on: "ws", lane: "r", test: wsNotGet,
		says: "a handshake by another method than GET is not answered 101 (RFC 6455 4.1)",
	},
	{
		id: "handshake/ws-subprotocol-unknown", level: "M", on: "ws", lane: "r", test: wsSubprotocolUnknown,
		says: "of unknown subprotocols none is chosen: the header is absent (RFC 6455 4.2.2)",
	},
	{
		id: "handshake/ws-subprotocol-chosen", level: "M", on: "ws", lane: "r", test: wsSubprotocolChosen,
		says: "a subprotocol of ours is chosen also where it is offered second (RFC 6455 4.2.2)",
	},
	{
		id: "handshake/ws-client-checks-accept", level: "M", on: "ws", lane: "r",
		elsewhere: "lives in transport/websocket TestClientRefusesABadAnswer",
		says:      "a client refuses an answer with the wrong Sec-WebSocket-Accept (RFC 6455 4.1)",
	},
	{
		id: "handshake/ws-client-checks-unasked", level: "M", on: "ws", lane: "r",
		elsewhere: "lives in transport/websocket TestClientRefusesABadAnswer",
		says:      "a client refuses a subprotocol or an extension that it has not offered (RFC 6455 4.1)",
	},
	{
		id: "handshake/error-before-upgrade", level: "M", on: "ws", lane: "r", test: errorBeforeUpgrade,
		says: "a bad request for a WebSocket is answered by a plain HTTP error with a Status (RFC 6455 4.2.2)",
	},
	{
		id: "handshake/accept-default", level: "M", on: all, lane: "r", test: acceptDefault,
		says: "no Accept, */* and application/* give JSON (RFC 9110 12.5.1)",
	},
	{
		id: "handshake/accept-406", level: "M", on: all, lane: "r", test: accept406,
		says: "an Accept that allows nothing there is is answered 406 with a Status (RFC 9110 15.5.7)",
	},
	{
		id: "handshake/accept-q", level: "M", on: all, lane: "r", test: acceptQ,
		says: "the weights of Accept count before its order (RFC 9110 12.4.2)",
	},
	{
		id: "handshake/accept-q0", level: "M", on: all, lane: "r", test: acceptQ0,
		says: "application/json;q=0 never gives JSON (RFC 9110 12.4.2)",
	},
	{
		id: "handshake/method-405", level: "M", on: "h1 h2", lane: "r", test: method405,
		says: "a watch by HEAD, PUT or the like is answered 405 with Allow (RFC 9110 15.5.6)",
	},
	{
		id: "handshake/watch-values", level: "Q", on: all, lane: "r", test: watchValues,
		says: "watch=1, true, yes or empty streams, 0 and false list, anything else is answered 400",
	},
	{
		id: "handshake/fallback", level: "Q", on: all, lane: "r", test: fallback,
		says: "a client that may use several transports falls to the next where a server refuses one, and sees the same events",
	},

	{
		id: "resume/from-rv", level: "M", on: all, lane: "r", test: fromRV,
		says: "a watch from a past version replays exactly what followed",
	},
	{
		id: "resume/restart", level: "M", on: all, lane: "r", test: restart,
		says: "a watch that is closed and opened again from its last version has no gap and no repeat",
	},
	{
		id: "resume/cross-transport", level: "Q", on: all, lane: "r", test: crossTransport,
		says: "a watch that is resumed on other transports is one exact history",
	},
	{
		id: "resume/cross-replica", level: "M", on: all, lane: "r", test: crossReplica,
		says: "a watch is resumed at another server over the same store (KEP-1904)",
	},
	{
		id: "resume/rv-unset", level: "M", on: all, lane: "r", test: rvUnset,
		says: "without a version a watch begins with a state that is not older than any acknowledged write, as ADDED",
	},
	{
		id: "resume/rv-zero", level: "M", on: all, lane: "r", test: rvZero,
		says: "from version 0 a watch begins with any state, then brings the changes",
	},
	{
		id: "resume/rv-exact-no-synthetic", level: "M", on: all, lane: "r", test: rvExactNoSynthetic,
		says: "from any other version no ADDED is made up for what is there",
	},
	{
		id: "resume/list-then-watch", level: "M", on: all, lane: "r", test: listThenWatch,
		says: "a list's version is a start at which concurrent writes are neither lost nor repeated",
	},
	{
		id: "resume/expired", level: "M", on: all, lane: "r", test: expired,
		says: "a watch from before the window is one ERROR of 410 Expired, a list HTTP 410",
	},
	{
		id: "resume/expired-never-skips", level: "M", on: all, lane: "r", test: expiredNeverSkips,
		says: "at every version around the edge of the window a watch is 410 or exact, never later than asked",
	},
	{
		id: "resume/expired-never-skips-bytes", level: "Q", on: all, lane: "r", test: expiredBytesNeverSkips, with: slidingWindow,
		says: "the same where the window is bounded by its size",
	},
	{
		id: "resume/compact-while-watching", level: "M", on: all, lane: "r", test: compactWhileWatching,
		says: "a compaction past the version of an open watch that has read everything leaves it exact",
	},
	{
		id: "resume/expired-during-replay", level: "M", on: all, lane: "r", test: expiredDuringReplay, with: setup{narrow: true},
		says: "a slow watcher that the window overruns is ended with 410 and has no hole",
	},
	{
		id: "resume/future-rv", level: "M", on: all, lane: "rf", test: futureRV,
		says: "a version in the future is waited for, then answered 504, and never by events up to it",
	},
	{
		id: "resume/list-future-rv", level: "S", on: "h1 h2", lane: "f", test: listFutureRV,
		says: "a list of a version in the future is 504 with cause ResourceVersionTooLarge and Retry-After",
	},
	{
		id: "resume/bad-rv", level: "M", on: all, lane: "r", test: badRV,
		says: "a resourceVersion that is no decimal number below 2^64 is answered 400 (RFC 9110 15.5.1)",
	},
	{
		id: "resume/rv-comparable", level: "S", on: all, lane: "r", test: rvComparable,
		says: "versions are decimal, without leading zeros, grow with each write and stay below 2^128 (KEP-5504)",
	},
	{
		id: "resume/rv-opaque-client", level: "M", on: all, lane: "f", test: rvOpaqueClient,
		says: "a client sends a decimal version back unchanged; any other is an error of code Unsupported, not a loop",
	},
	{
		id: "resume/server-restart", level: "M", on: all, lane: "r", test: serverRestart,
		says: "a server that starts again on a store in memory uses no version twice, and answers those of before by 410",
	},
	{
		id: "resume/store-reset", level: "M", on: all, lane: "f", test: storeReset,
		says: "where versions went back, a client learns that it must begin again",
	},
	{
		id: "resume/last-event-id", level: "M", on: "h1 h2", lane: "r", test: lastEventID,
		says: "Last-Event-ID resumes like resourceVersion; both and different is answered 400 (HTML 9.2.4)",
	},
	{
		id: "resume/match-rules", level: "M", on: "h1 h2", lane: "r", test: matchRules,
		says: "lists obey the table of resourceVersionMatch, limit and continue in Kubernetes' API concepts",
	},

	{
		id: "select/label-ops", level: "M", on: all, lane: "r", test: labelOps,
		says: "label selectors know =, ==, !=, in, notin, exists and !exists",
	},
	{
		id: "select/leaves-selector", level: "M", on: all, lane: "r", test: leavesSelector,
		says: "an object that stops matching is DELETED, one that begins to is ADDED",
	},
	{
		id: "select/leaves-carries-new-rv", level: "M", on: all, lane: "r", test: leavesCarriesNewRV,
		says: "that DELETED has the version of the update and the content that matched",
	},
	{
		id: "select/non-matching-silent", level: "M", on: all, lane: "r", test: nonMatchingSilent,
		says: "changes outside of the selector send nothing",
	},
	{
		id: "select/field-name", level: "M", on: all, lane: "r", test: fieldName,
		says: "metadata.name=x selects the objects of that name",
	},
	{
		id: "select/field-unknown", level: "M", on: all, lane: "r", test: fieldUnknown,
		says: "a field that is not known is answered 400",
	},
	{
		id: "select/bad-syntax", level: "M", on: all, lane: "r", test: badSyntax,
		says: "a selector that can't be read is answered 400",
	},
	{
		id: "select/combined-resume", level: "M", on: all, lane: "r", test: combinedResume,
		says: "a watch is resumed exactly with its selector, and with another one as if that had been there before",
	},
	{
		id: "select/empty-result", level: "M", on: all, lane: "r", test: emptyResult, with: eagerBookmarks,
		says: "a selector that nothing matches gives an open stream, on which bookmarks come",
	},
	{
		id: "select/property", level: "Q", on: all, lane: "f", test: selectProperty,
		says: "a random history is seen through a selector as a model says",
	},

	{
		id: "error/status-shape", level: "M", on: all, lane: "r", test: statusShape,
		says: "an error is a Status: kind, apiVersion v1, status Failure, message, reason and code",
	},
	{
		id: "error/in-stream", level: "M", on: all, lane: "r", test: errorInStream,
		says: "an ERROR event carries a Status; nothing follows, and the stream ends",
	},
	{
		id: "error/http-code-equals-status", level: "M", on: "h1 h2", lane: "r", test: httpCodeEqualsStatus,
		says: "the code of the Status is the status of the response",
	},
	{
		id: "error/404", level: "M", on: all, lane: "r", test: error404,
		says: "an unknown resource is answered 404 before any stream",
	},
	{
		id: "error/422-causes", level: "M", on: all, lane: "r", test: error422Causes,
		says: "parameters that don't go together are answered 422 with causes that name the field",
	},
	{
		id: "error/negotiated", level: "S", on: all, lane: "r", test: errorNegotiated,
		says: "the body of an error is JSON also where Accept can't be read; it is to be had in nothing else (RFC 9110 15.5.7)",
	},
	{
		id: "error/client-typed", level: "M", on: all, lane: "f", test: clientTyped,
		says: "a client turns 410, 429, 504, 401, 403 and 5xx into errors of a code",
	},
	{
		id: "error/html-502", level: "M", on: all, lane: "f", test: html502,
		says: "a proxy's page is a bounded message to a client, which tries again with backoff",
	},
	{
		id: "error/retry-after", level: "M", on: all, lane: "f", test: retryAfter,
		says: "a client waits as long as Retry-After says, in seconds or as a date (RFC 9110 10.2.3, RFC 6585 4)",
	},
	{
		id: "error/no-retry-on-4xx", level: "M", on: all, lane: "f", test: noRetryOn4xx,
		says: "a client does not ask again after 400, 403 or 406, and 410 is told once",
	},
}
