// Package auth has the cases about TLS, credentials and cross-origin requests.
package auth

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// tlsSetup enables TLS. tokenSetup requires credentials.
var (
	tlsSetup   = harness.Setup{TLS: true}
	tokenSetup = harness.Setup{Access: harness.Access{RequireUser: true}}
	// expirySetup requires credentials too, and they expire after the time in the constant
	// lifetime, long before a watch without timeoutSeconds would end.
	expirySetup = harness.Setup{Access: harness.Access{RequireUser: true, Lifetime: lifetime}}
)

// Cases lists the cases about TLS and credentials.
var Cases = []harness.Case{
	{
		ID: "tls/versions", Needs: harness.OwnCollection | harness.Configurable, Setup: tlsSetup, Run: tlsVersions,
		Rule: "the server accepts TLS 1.2 and 1.3 and nothing older (RFC 8446; RFC 8996)",
	},
	{
		ID: "tls/bad-ca", Subject: harness.Client, Needs: harness.InProcess, Run: badCA,
		Rule: "a client refuses a certificate from an unknown authority, and its error says so (RFC 9110, section " +
			"4.3.4)",
	},
	{
		ID: "tls/wrong-name", Subject: harness.Client, Needs: harness.InProcess, Run: wrongName,
		Rule: "a client refuses the certificate of another host, and its error says so (RFC 9110, section 4.3.4)",
	},
	{
		ID: "tls/expired", Subject: harness.Client, Needs: harness.InProcess, Run: expiredCertificate,
		Rule: "a client refuses an expired or not yet valid certificate, and its error says so (RFC 9110, section " +
			"4.3.4)",
	},
	{
		ID: "tls/mtls", Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.Setup{TLS: true, Access: harness.Access{RequireUser: true, ClientCertificates: true}},
		Run:   mutualTLS,
		Rule: "a client without the required certificate, or with an untrusted one, gets no watch; otherwise the " +
			"certificate names the user",
	},
	{
		ID: "tls/rotate", Level: harness.Promise,
		Needs: harness.OwnCollection | harness.Configurable | harness.InProcess, Setup: tlsSetup,
		Run:  rotateCertificate,
		Rule: "open watches survive a change of the server's certificate, and new connections get the new one",
	},
	{
		ID: "tls/truncation", Subject: harness.Client, Needs: harness.InProcess, Run: tlsTruncation,
		Rule: "a connection that ends without a TLS close_notify is not a clean end of a stream (RFC 8446, section " +
			"6.1)",
	},
	{
		ID: "auth/401", Needs: harness.Configurable, Setup: tokenSetup, Run: unauthorized,
		Rule: "a request without valid credentials gets 401 with WWW-Authenticate, before any upgrade (RFC 9110, " +
			"sections 15.5.2 and 11.6.1)",
	},
	{
		ID: "auth/403", Needs: harness.Configurable, Setup: tokenSetup, Run: forbidden,
		Rule: "a user without permission to watch gets 403 with a Status, before any upgrade",
	},
	{
		ID: "auth/ws-bearer-subprotocol", Level: harness.Should, Transports: "ws", Needs: harness.Configurable,
		Setup: tokenSetup, Run: bearerSubprotocol,
		Rule: "the server accepts a bearer token in a WebSocket subprotocol, and does not select that subprotocol " +
			"(Kubernetes, for browsers)",
	},
	{
		ID: "auth/token-refresh", Level: harness.Promise, Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: tokenRefresh,
		Rule: "a client whose credentials are refused requests fresh ones once and resumes",
	},
	{
		ID: "auth/token-expiries", Level: harness.Promise, Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: tokenExpiries,
		Rule: "a watch on which nothing happens survives any number of expiring credentials, each refreshed once",
	},
	{
		ID: "auth/expiry-mid-stream", Level: harness.Promise, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.Configurable, Setup: expirySetup, Run: expiry,
		Rule: "a watch whose credentials expire ends at that time with an ERROR event of code 401",
	},
}
