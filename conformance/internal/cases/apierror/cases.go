// Package apierror has the cases about errors: HTTP error responses and ERROR events.
package apierror

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about errors.
var Cases = []harness.Case{
	{
		ID: "error/status-shape", Needs: harness.KubernetesPaths, Run: statusShape,
		Rule: "an error is a Status with kind, apiVersion v1, status Failure, message, reason and code",
	},
	{
		ID: "error/in-stream", Needs: harness.OwnCollection | harness.Compacts, Run: errorInStream,
		Rule: "an ERROR event carries a Status and is the last event of the stream",
	},
	{
		ID: "error/http-code-equals-status", Transports: "h1 h2",
		Needs: harness.OwnCollection | harness.Compacts | harness.KubernetesPaths, Run: httpCodeEqualsStatus,
		Rule: "the code of the Status equals the HTTP status of the response",
	},
	{
		ID: "error/404", Needs: harness.KubernetesPaths, Run: error404,
		Rule: "a request for an unknown resource gets 404 before any stream starts",
	},
	{
		ID: "error/422-causes", Run: error422Causes,
		Rule: "conflicting parameters get 422 with causes that name the field",
	},
	{
		ID: "error/negotiated", Level: harness.Should, Run: errorNegotiated,
		Rule: "the body of an error is always JSON, even if the Accept header cannot be parsed or excludes JSON (RFC " +
			"9110 15.5.7)",
	},
	{
		ID: "error/client-typed", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run:  clientTyped,
		Rule: "a client turns 410, 429, 504, 401, 403 and 5xx into errors with a code",
	},
	{
		ID: "error/html-502", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess, Run: html502,
		Rule: "a client reports an HTML error page of a proxy as a bounded message and retries with backoff",
	},
	{
		ID: "error/retry-after", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run:  retryAfter,
		Rule: "a client waits as long as Retry-After says, in seconds or as a date (RFC 9110 10.2.3, RFC 6585 4)",
	},
	{
		ID: "error/no-retry-on-4xx", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run:  noRetryOn4xx,
		Rule: "a client does not retry after 400, 403 or 406, and reports 410 once",
	},
}
