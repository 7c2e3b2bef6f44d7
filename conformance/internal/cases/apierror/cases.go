// Package apierror has the cases about errors: HTTP error responses and ERROR events.
package apierror

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about errors.
var Cases = []harness.Case{
	{
		ID: "error/status-shape", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an error is a Status with kind, apiVersion v1, status Failure, message, " +
			"reason and code",
		Needs: harness.KubernetesPaths, Run: statusShape,
	},
	{
		ID: "error/in-stream", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "an ERROR event carries a Status and is the last event of the stream",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter, Run: errorInStream,
	},
	{
		ID: "error/http-code-equals-status", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule:  "the code of the Status equals the HTTP status of the response",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter | harness.KubernetesPaths, Run: httpCodeEqualsStatus,
	},
	{
		ID: "error/404", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a request for an unknown resource gets 404 before any stream starts",
		Needs: harness.KubernetesPaths, Run: error404,
	},
	{
		ID: "error/422-causes", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "conflicting parameters get 422 with causes that name the field",
		Run:  error422Causes,
	},
	{
		ID: "error/negotiated", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "the body of an error is always JSON, even if the Accept header cannot be " +
			"parsed or excludes JSON (RFC 9110 15.5.7)",
		Run: errorNegotiated,
	},
	{
		ID: "error/client-typed", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a client turns 410, 429, 504, 401, 403 and 5xx into errors with a code",
		Needs: harness.InProcess, Run: clientTyped,
	},
	{
		ID: "error/html-502", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client reports an HTML error page of a proxy as a bounded message and " +
			"retries with backoff",
		Needs: harness.InProcess, Run: html502,
	},
	{
		ID: "error/retry-after", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client waits as long as Retry-After says, in seconds or as a date (RFC 9110 " +
			"10.2.3, RFC 6585 4)",
		Needs: harness.InProcess, Run: retryAfter,
	},
	{
		ID: "error/no-retry-on-4xx", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a client does not retry after 400, 403 or 406, and reports 410 once",
		Needs: harness.InProcess, Run: noRetryOn4xx,
	},
}
