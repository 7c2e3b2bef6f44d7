package watchserver

import (
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rest"
)

// A request holds the parsed parameters of a list or a watch of an endpoint.
type request struct {
	rest.Request
	weight int // the number of watches that a watch counts as
}

// parseRequest parses the parameters of r, and restricts them to e.
func parseRequest(r *http.Request, a *apihttp.Parsed, e Endpoint) (q request, err error) {
	query, err := a.Query()
	if err != nil {
		return q, err
	}
	q.weight = weightOf(query)
	if q.Request, err = a.Params.Request(e.Watch, r.Header.Get("Last-Event-ID")); err != nil {
		return q, err
	}
	if name, ok := q.Fields.Equality(listwatch.FieldName); ok && e.Name != "" && name != e.Name {
		return q, badParameter("fieldSelector: metadata.name is %s, but the path names %s", name, e.Name)
	}
	q.Selection = e.Selection.And(q.Selection)
	if !q.Projection.Empty() {
		if err := listwatch.Describe(e.Source).RequireJSON("the parameter fields"); err != nil {
			return q, err
		}
	}
	switch {
	case q.Watch && r.Method != http.MethodGet:
		return q, apihttp.MethodNotAllowed(r, "GET, QUERY")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return q, apihttp.MethodNotAllowed(r, "GET, HEAD, QUERY")
	}
	return q, nil
}

// textPerWatch is the length of selectors for which a watch counts once more. Selectors take about
// four times the memory of their text, and a watch takes up to 16 KiB.
const textPerWatch = 4 << 10

// weightOf returns the weight of a watch with the given parameters.
func weightOf(query url.Values) int {
	n := 0
	for _, values := range query {
		for _, v := range values {
			n += len(v)
		}
	}
	return 1 + n/textPerWatch
}
