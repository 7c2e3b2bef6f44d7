// Package apierror has the cases about errors: HTTP error responses and ERROR events.
package apierror

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases lists the cases about errors.
var Cases = []harness.Case{
	harness.Rule("error/status-shape",
		"an error is a Status with kind, apiVersion v1, status Failure, message, reason and code",
		harness.Case{Needs: harness.KubernetesPaths, Run: statusShape}),
	harness.Rule("error/in-stream", "an ERROR event carries a Status and is the last event of the stream",
		harness.Case{Needs: harness.OwnCollection | harness.Compacts, Run: errorInStream}),
	harness.Rule("error/http-code-equals-status", "the code of the Status equals the HTTP status of the response",
		harness.Case{
			Transports: "h1 h2", Needs: harness.OwnCollection | harness.Compacts | harness.KubernetesPaths,
			Run: httpCodeEqualsStatus,
		}),
	harness.Rule("error/404", "a request for an unknown resource gets 404 before any stream starts",
		harness.Case{Needs: harness.KubernetesPaths, Run: error404}),
	harness.Rule("error/422-causes", "conflicting parameters get 422 with causes that name the field",
		harness.Case{Run: error422Causes}),
	harness.Rule("error/negotiated",
		"the body of an error is always JSON, even if the Accept header cannot be parsed or excludes JSON (RFC 9110 "+
			"15.5.7)",
		harness.Case{Strength: harness.Should, Run: errorNegotiated}),
	harness.Rule("error/client-typed", "a client turns 410, 429, 504, 401, 403 and 5xx into errors with a code",
		harness.Case{Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess, Run: clientTyped}),
	harness.Rule("error/html-502",
		"a client reports an HTML error page of a proxy as a bounded message and retries with backoff",
		harness.Case{Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess, Run: html502}),
	harness.Rule("error/retry-after",
		"a client waits as long as Retry-After says, in seconds or as a date (RFC 9110 10.2.3, RFC 6585 4)",
		harness.Case{Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess, Run: retryAfter}),
	harness.Rule("error/retry-statuses",
		"a watch resumes after 408, 425, 429, 500, 502, 503, 504, 507, and 520 to 530, which proxies send (RFC 9110 "+
			"15.5.9, RFC 8470 5.2, RFC 6585 4)",
		harness.Case{
			Strength: harness.Should, Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess,
			Run: retryStatuses,
		}),
	harness.Rule("error/no-retry-on-4xx",
		"a client does not retry after 400, 403, 404 or 406, which are permanent, and reports 410 once",
		harness.Case{Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess, Run: noRetryOn4xx}),
}
