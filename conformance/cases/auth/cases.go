// Package auth has the cases about TLS, credentials and cross-origin requests.
package auth

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// secure is a server of TLS, guarded one that asks who its clients are.
var (
	secure  = harness.Setup{TLS: true}
	guarded = harness.Setup{Access: harness.Access{RequireUser: true}}
)

// Cases are those of TLS and of credentials.
var Cases = []harness.Case{
	{
		ID: "tls/versions", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "TLS 1.2 and 1.3 are spoken, and nothing older (RFC 8446; RFC 8996)",
		Setup: secure,
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter, Run: tlsVersions,
	},
	{
		ID: "tls/bad-ca", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a client refuses a certificate that nobody it trusts has signed, and says so (RFC 9110, section 4.3.4)",
		Needs: harness.InProcess, Run: badCA,
	},
	{
		ID: "tls/wrong-name", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a client refuses the certificate of another host, and says so (RFC 9110, section 4.3.4)",
		Needs: harness.InProcess, Run: wrongName,
	},
	{
		ID: "tls/expired", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a client refuses a certificate that is valid no more or not yet, and says so (RFC 9110, section 4.3.4)",
		Needs: harness.InProcess, Run: expiredCertificate,
	},
	{
		ID: "tls/mtls", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a client without the certificate that is required, or with a strange one, gets no watch; another is the user of its certificate",
		Setup: harness.Setup{TLS: true, Access: harness.Access{RequireUser: true, ClientCertificates: true}},
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter, Run: mutualTLS,
	},
	{
		ID: "tls/rotate", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "open watches outlive the server's certificate, and whoever connects is shown the new one",
		Setup: secure,
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter | harness.InProcess, Run: rotate,
	},
	{
		ID: "tls/truncation", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "r",
		Rule:  "the end of a connection without TLS' word for it is no clean end of a stream (RFC 8446, section 6.1)",
		Needs: harness.InProcess, Run: tlsTruncation,
	},
	{
		ID: "auth/401", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a request without credentials, or with wrong ones, is answered 401 with WWW-Authenticate, before any upgrade (RFC 9110, sections 15.5.2 and 11.6.1)",
		Setup: guarded,
		Needs: harness.Configurable, Run: unauthorized,
	},
	{
		ID: "auth/403", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a user who may not watch is answered 403 with a Status, before any upgrade",
		Setup: guarded,
		Needs: harness.Configurable, Run: forbidden,
	},
	{
		ID: "auth/ws-bearer-subprotocol", Level: harness.Should, Subject: harness.Server, Transports: "ws", Mode: "r",
		Rule:  "a bearer token may come as a WebSocket subprotocol, which is not answered (Kubernetes, for browsers)",
		Setup: guarded,
		Needs: harness.Configurable, Run: bearerSubprotocol,
	},
	{
		ID: "auth/token-refresh", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a client whose credentials are refused asks for fresh ones, once, and goes on where it was",
		Needs: harness.InProcess, Run: tokenRefresh,
	},
	{
		ID: "auth/expiry-mid-stream", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:      "a watch may end with its credentials, by an ERROR of code 401",
		CoveredBy: "needs credentials that say when they expire: those of the server, tokens in a file, don't",
	},
}
