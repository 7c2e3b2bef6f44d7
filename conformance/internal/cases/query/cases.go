// Package query has the conformance cases about QUERY (RFC 10008): lists and watches with their
// parameters in the body. The cases are skipped if the server sends no Accept-Query.
package query

import "github.com/listwatch/listwatch/conformance/harness"

// Cases check QUERY.
var Cases = []harness.Case{
	harness.Rule("query/list",
		"a QUERY gets the same list as a GET with the same parameters",
		harness.Case{Transports: "h1 h2", Needs: harness.OwnCollection, Run: list}),
	harness.Rule("query/watch", "a QUERY with a selector of 20 kB watches like a GET",
		harness.Case{Transports: "h1 h2", Needs: harness.OwnCollection, Run: watch}),
	harness.Rule("query/refused",
		"a body without a type or with malformed parameters gets 400, and one of another type 415 with Accept-Query "+
			"(RFC 10008, sections 2 and 3)",
		harness.Case{Transports: "h1 h2", Run: refused}),
}
