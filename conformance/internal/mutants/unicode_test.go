package mutants

import (
	"net/http"
	"strings"
)

// unicodeMutants are servers with one defect each, which the cases about text and numbers must
// detect.
var unicodeMutants = []mutant{
	{
		Name: "normalizes-unicode", Breaks: []string{"unicode/roundtrip"},
		Defect: defect{Source: onData("e\u0301", "é")},
	},
	{
		Name: "drops-unpaired-surrogates", Breaks: []string{"unicode/surrogates"},
		Defect: defect{Source: onData(`\udc00"`, `"`)},
	},
	{
		Name: "rewrites-exponents", Breaks: []string{"unicode/numbers"},
		Defect: defect{Source: onData(`1e400`, `1e+400`)},
	},
	{
		Name: "repairs-queries", Breaks: []string{"unicode/names-in-selectors"},
		Defect: defect{Handler: onQueryValues(func(value string) string { return strings.ToValidUTF8(value, "") })},
	},
	{
		Name: "reads-queries-as-ascii", Breaks: []string{"unicode/names-in-selectors"},
		Defect: defect{Handler: onQueryValues(func(value string) string {
			return strings.Map(func(r rune) rune {
				if r > 0x7f && r != '\uFFFD' {
					return 'o'
				}
				return r
			}, value)
		})},
	},
}

// onQueryValues returns a middleware that applies change to each value in the query of the URL.
func onQueryValues(change func(string) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			for _, values := range query {
				for i := range values {
					values[i] = change(values[i])
				}
			}
			r.URL.RawQuery = query.Encode()
			next.ServeHTTP(w, r)
		})
	}
}
