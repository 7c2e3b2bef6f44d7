package cases

// errorCases are those of errors and Status.
var errorCases = []Case{
	{
		ID: "error/status-shape", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "an error is a Status: kind, apiVersion v1, status Failure, message, reason and code",
		needs: KubernetesPaths, run: statusShape,
	},
	{
		ID: "error/in-stream", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "an ERROR event carries a Status; nothing follows, and the stream ends",
		needs: Writes | Compacts | SoleWriter, run: errorInStream,
	},
	{
		ID: "error/http-code-equals-status", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "the code of the Status is the status of the response",
		needs: Writes | Compacts | SoleWriter | KubernetesPaths, run: httpCodeEqualsStatus,
	},
	{
		ID: "error/404", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "an unknown resource is answered 404 before any stream",
		needs: KubernetesPaths, run: error404,
	},
	{
		ID: "error/422-causes", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "parameters that don't go together are answered 422 with causes that name the field",
		run:  error422Causes,
	},
	{
		ID: "error/negotiated", Level: Should, Subject: Server, Transports: all, Mode: "r",
		Rule: "the body of an error is JSON also where Accept can't be read; it is to be had in nothing else (RFC 9110 15.5.7)",
		run:  errorNegotiated,
	},
	{
		ID: "error/client-typed", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client turns 410, 429, 504, 401, 403 and 5xx into errors of a code",
		needs: InProcess, run: clientTyped,
	},
	{
		ID: "error/html-502", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a proxy's page is a bounded message to a client, which tries again with backoff",
		needs: InProcess, run: html502,
	},
	{
		ID: "error/retry-after", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client waits as long as Retry-After says, in seconds or as a date (RFC 9110 10.2.3, RFC 6585 4)",
		needs: InProcess, run: retryAfter,
	},
	{
		ID: "error/no-retry-on-4xx", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client does not ask again after 400, 403 or 406, and 410 is told once",
		needs: InProcess, run: noRetryOn4xx,
	},
}
