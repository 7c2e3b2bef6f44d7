// Package auth has the cases about TLS, credentials and cross-origin requests.
package auth

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// tlsSetup enables TLS, and tokenSetup requires credentials.
var (
	tlsSetup   = harness.Setup{TLS: true}
	tokenSetup = harness.Setup{Access: harness.Access{RequireUser: true}}
	// expirySetup requires credentials that expire after lifetime, long before a watch without
	// timeoutSeconds would end.
	expirySetup = harness.Setup{Access: harness.Access{RequireUser: true, Lifetime: lifetime}}
)

// Cases lists the cases about TLS and credentials.
var Cases = []harness.Case{
	harness.Rule("tls/versions", "the server accepts TLS 1.2 and 1.3 and nothing older (RFC 8446; RFC 8996)",
		harness.Case{Needs: harness.OwnCollection | harness.Configurable, Setup: tlsSetup, Run: tlsVersions}),
	harness.Rule("tls/bad-ca",
		"a client refuses a certificate from an unknown authority, and its error says so (RFC 9110, section 4.3.4)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: badCA}),
	harness.Rule("tls/wrong-name",
		"a client refuses the certificate of another host, and its error says so (RFC 9110, section 4.3.4)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: wrongName}),
	harness.Rule("tls/expired",
		"a client refuses an expired or not yet valid certificate, and its error says so (RFC 9110, section 4.3.4)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: expiredCertificate}),
	harness.Rule("tls/mtls",
		"a client without the required certificate, or with an untrusted one, gets no watch; otherwise the "+
			"certificate names the user", harness.Case{
			Needs: harness.OwnCollection | harness.Configurable,
			Setup: harness.Setup{TLS: true, Access: harness.Access{RequireUser: true, ClientCertificates: true}},
			Run:   mutualTLS,
		}),
	harness.Rule("tls/rotate",
		"open watches survive a change of the server's certificate, and new connections get the new one", harness.Case{
			Strength: harness.Promise, Needs: harness.OwnCollection | harness.Configurable | harness.InProcess,
			Setup: tlsSetup, Run: rotateCertificate,
		}),
	harness.Rule("tls/truncation",
		"a connection that ends without a TLS close_notify is not a clean end of a stream (RFC 8446, section 6.1)",
		harness.Case{Subject: harness.Client, Needs: harness.InProcess, Run: tlsTruncation}),
	harness.Rule("auth/401",
		"a request without valid credentials gets 401 with WWW-Authenticate, before any upgrade (RFC 9110, sections "+
			"15.5.2 and 11.6.1)",
		harness.Case{Needs: harness.Configurable, Setup: tokenSetup, Run: unauthorized}),
	harness.Rule("auth/403", "a user without permission to watch gets 403 with a Status, before any upgrade",
		harness.Case{Needs: harness.Configurable, Setup: tokenSetup, Run: forbidden}),
	harness.Rule("auth/ws-bearer-subprotocol",
		"the server accepts a bearer token in a WebSocket subprotocol, and does not select that subprotocol "+
			"(Kubernetes, for browsers)", harness.Case{
			Strength: harness.Should, Transports: "ws", Needs: harness.Configurable, Setup: tokenSetup,
			Run: bearerSubprotocol,
		}),
	harness.Rule("auth/token-refresh", "a client whose credentials are refused requests fresh ones once and resumes",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess,
			Run: tokenRefresh,
		}),
	harness.Rule("auth/token-expiries",
		"a watch on which nothing happens survives any number of expiring credentials, each refreshed once",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess,
			Run: tokenExpiries,
		}),
	harness.Rule("auth/expiry-mid-stream",
		"a watch whose credentials expire ends at that time with an ERROR event of code 401", harness.Case{
			Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.Configurable,
			Setup: expirySetup, Run: expiry,
		}),
}
