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
		ID: "tls/versions", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "the server accepts TLS 1.2 and 1.3 and nothing older (RFC 8446; RFC 8996)",
		Setup: tlsSetup,
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter, Run: tlsVersions,
	},
	{
		ID: "tls/bad-ca", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client refuses a certificate from an unknown authority, and its error says " +
			"so (RFC 9110, section 4.3.4)",
		Needs: harness.InProcess, Run: badCA,
	},
	{
		ID: "tls/wrong-name", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client refuses the certificate of another host, and its error says so (RFC " +
			"9110, section 4.3.4)",
		Needs: harness.InProcess, Run: wrongName,
	},
	{
		ID: "tls/expired", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client refuses an expired or not yet valid certificate, and its error says " +
			"so (RFC 9110, section 4.3.4)",
		Needs: harness.InProcess, Run: expiredCertificate,
	},
	{
		ID: "tls/mtls", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a client without the required certificate, or with an untrusted one, gets no " +
			"watch; otherwise the certificate names the user",
		Setup: harness.Setup{TLS: true, Access: harness.Access{RequireUser: true, ClientCertificates: true}},
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter, Run: mutualTLS,
	},
	{
		ID: "tls/rotate", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "open watches survive a change of the server's certificate, and new " +
			"connections get the new one",
		Setup: tlsSetup,
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter | harness.InProcess, Run: rotateCertificate,
	},
	{
		ID: "tls/truncation", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a connection that ends without a TLS close_notify is not a clean end of a " +
			"stream (RFC 8446, section 6.1)",
		Needs: harness.InProcess, Run: tlsTruncation,
	},
	{
		ID: "auth/401", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a request without valid credentials gets 401 with WWW-Authenticate, before " +
			"any upgrade (RFC 9110, sections 15.5.2 and 11.6.1)",
		Setup: tokenSetup,
		Needs: harness.Configurable, Run: unauthorized,
	},
	{
		ID: "auth/403", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a user without permission to watch gets 403 with a Status, before any upgrade",
		Setup: tokenSetup,
		Needs: harness.Configurable, Run: forbidden,
	},
	{
		ID: "auth/ws-bearer-subprotocol", Level: harness.Should, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "the server accepts a bearer token in a WebSocket subprotocol, and does not " +
			"select that subprotocol (Kubernetes, for browsers)",
		Setup: tokenSetup,
		Needs: harness.Configurable, Run: bearerSubprotocol,
	},
	{
		ID: "auth/token-refresh", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a client whose credentials are refused requests fresh ones once and resumes",
		Needs: harness.InProcess, Run: tokenRefresh,
	},
	{
		ID: "auth/token-expiries", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a watch on which nothing happens survives any number of expiring credentials, " +
			"each refreshed once",
		Needs: harness.InProcess, Run: tokenExpiries,
	},
	{
		ID: "auth/expiry-mid-stream", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a watch whose credentials expire ends at that time with an ERROR event of code 401",
		Setup: expirySetup, Needs: harness.Configurable | harness.Writes | harness.SoleWriter, Run: expiry,
	},
}
