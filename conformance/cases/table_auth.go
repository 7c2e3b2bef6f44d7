package cases

// secure is a server of TLS, guarded one that asks who its clients are.
var (
	secure  = Setup{TLS: true}
	guarded = Setup{Access: Access{Users: true}}
)

// authCases are those of TLS and of credentials.
var authCases = []Case{
	{
		ID: "tls/versions", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "TLS 1.2 and 1.3 are spoken, and nothing older (RFC 8446; RFC 8996)",
		setup: secure,
		needs: Setups | Writes | Alone, run: tlsVersions,
	},
	{
		ID: "tls/bad-ca", Level: Must, Subject: Client, On: all, Lane: "r",
		Says:  "a client refuses a certificate that nobody it trusts has signed, and says so (RFC 9110, section 4.3.4)",
		needs: Inside, run: badCA,
	},
	{
		ID: "tls/wrong-name", Level: Must, Subject: Client, On: all, Lane: "r",
		Says:  "a client refuses the certificate of another host, and says so (RFC 9110, section 4.3.4)",
		needs: Inside, run: wrongName,
	},
	{
		ID: "tls/expired", Level: Must, Subject: Client, On: all, Lane: "r",
		Says:  "a client refuses a certificate that is valid no more or not yet, and says so (RFC 9110, section 4.3.4)",
		needs: Inside, run: expiredCertificate,
	},
	{
		ID: "tls/mtls", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a client without the certificate that is required, or with a strange one, gets no watch; another is the user of its certificate",
		setup: Setup{TLS: true, Access: Access{Users: true, Certificates: true}},
		needs: Setups | Writes | Alone, run: mutualTLS,
	},
	{
		ID: "tls/rotate", Level: Promise, Subject: Server, On: all, Lane: "r",
		Says:  "open watches outlive the server's certificate, and whoever connects is shown the new one",
		setup: secure,
		needs: Setups | Writes | Alone | Inside, run: rotate,
	},
	{
		ID: "tls/truncation", Level: Must, Subject: Client, On: all, Lane: "r",
		Says:  "the end of a connection without TLS' word for it is no clean end of a stream (RFC 8446, section 6.1)",
		needs: Inside, run: tlsTruncation,
	},
	{
		ID: "auth/401", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a request without credentials, or with wrong ones, is answered 401 with WWW-Authenticate, before any upgrade (RFC 9110, sections 15.5.2 and 11.6.1)",
		setup: guarded,
		needs: Setups, run: unauthorized,
	},
	{
		ID: "auth/403", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a user who may not watch is answered 403 with a Status, before any upgrade",
		setup: guarded,
		needs: Setups, run: forbidden,
	},
	{
		ID: "auth/ws-bearer-subprotocol", Level: Should, Subject: Server, On: "ws", Lane: "r",
		Says:  "a bearer token may come as a WebSocket subprotocol, which is not answered (Kubernetes, for browsers)",
		setup: guarded,
		needs: Setups, run: bearerSubprotocol,
	},
	{
		ID: "auth/token-refresh", Level: Promise, Subject: Client, On: all, Lane: "f",
		Says:  "a client whose credentials are refused asks for fresh ones, once, and goes on where it was",
		needs: Inside, run: tokenRefresh,
	},
	{
		ID: "auth/expiry-mid-stream", Level: Promise, Subject: Server, On: all, Lane: "f",
		Says:      "a watch may end with its credentials, by an ERROR of code 401",
		Elsewhere: "needs credentials that say when they expire: those of the server, tokens in a file, don't",
	},
}
