package cases

// secure is a server of TLS, guarded one that asks who its clients are.
var (
	secure  = Setup{TLS: true}
	guarded = Setup{Access: Access{RequireUser: true}}
)

// authCases are those of TLS and of credentials.
var authCases = []Case{
	{
		ID: "tls/versions", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "TLS 1.2 and 1.3 are spoken, and nothing older (RFC 8446; RFC 8996)",
		setup: secure,
		needs: Configurable | Writes | SoleWriter, run: tlsVersions,
	},
	{
		ID: "tls/bad-ca", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "a client refuses a certificate that nobody it trusts has signed, and says so (RFC 9110, section 4.3.4)",
		needs: InProcess, run: badCA,
	},
	{
		ID: "tls/wrong-name", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "a client refuses the certificate of another host, and says so (RFC 9110, section 4.3.4)",
		needs: InProcess, run: wrongName,
	},
	{
		ID: "tls/expired", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "a client refuses a certificate that is valid no more or not yet, and says so (RFC 9110, section 4.3.4)",
		needs: InProcess, run: expiredCertificate,
	},
	{
		ID: "tls/mtls", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a client without the certificate that is required, or with a strange one, gets no watch; another is the user of its certificate",
		setup: Setup{TLS: true, Access: Access{RequireUser: true, ClientCertificates: true}},
		needs: Configurable | Writes | SoleWriter, run: mutualTLS,
	},
	{
		ID: "tls/rotate", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "open watches outlive the server's certificate, and whoever connects is shown the new one",
		setup: secure,
		needs: Configurable | Writes | SoleWriter | InProcess, run: rotate,
	},
	{
		ID: "tls/truncation", Level: Must, Subject: Client, Transports: all, Mode: "r",
		Rule:  "the end of a connection without TLS' word for it is no clean end of a stream (RFC 8446, section 6.1)",
		needs: InProcess, run: tlsTruncation,
	},
	{
		ID: "auth/401", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a request without credentials, or with wrong ones, is answered 401 with WWW-Authenticate, before any upgrade (RFC 9110, sections 15.5.2 and 11.6.1)",
		setup: guarded,
		needs: Configurable, run: unauthorized,
	},
	{
		ID: "auth/403", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a user who may not watch is answered 403 with a Status, before any upgrade",
		setup: guarded,
		needs: Configurable, run: forbidden,
	},
	{
		ID: "auth/ws-bearer-subprotocol", Level: Should, Subject: Server, Transports: "ws", Mode: "r",
		Rule:  "a bearer token may come as a WebSocket subprotocol, which is not answered (Kubernetes, for browsers)",
		setup: guarded,
		needs: Configurable, run: bearerSubprotocol,
	},
	{
		ID: "auth/token-refresh", Level: Promise, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client whose credentials are refused asks for fresh ones, once, and goes on where it was",
		needs: InProcess, run: tokenRefresh,
	},
	{
		ID: "auth/expiry-mid-stream", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:      "a watch may end with its credentials, by an ERROR of code 401",
		CoveredBy: "needs credentials that say when they expire: those of the server, tokens in a file, don't",
	},
}
