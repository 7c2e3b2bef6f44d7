package mutants

import (
	"net/http"

	"github.com/listwatch/listwatch/transport"
)

// queryMutants are servers with one defect each, which the cases about QUERY must detect.
var queryMutants = []mutant{
	{
		Name: "ignores-the-body-of-a-query", Breaks: []string{"query/list", "query/watch"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.Method == transport.MethodQuery {
				r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
			}
		})},
	},
	{
		Name: "guesses-the-type-of-a-query", Breaks: []string{"query/refused"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.Method == transport.MethodQuery {
				r.Header.Set("Content-Type", transport.QueryType)
			}
		})},
	},
}
