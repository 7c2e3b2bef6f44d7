package apihttp

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/rest"
)

// Parsed holds the parts of a request that are parsed once, although several handlers need them.
type Parsed struct {
	// Params holds the parameters in the query of the URL, or in the body of a QUERY, as far as
	// they can be parsed; see Query.
	Params    rest.Params
	of        source
	queryErr  error
	accept    []framing.MediaRange
	acceptErr error
}

// A source has the parts of a request that determine a Parsed.
type source struct {
	method, query string
	accept        []string
}

// isOf reports whether p is the result of parsing r.
func (p *Parsed) isOf(r *http.Request) bool {
	return p != nil && p.of.method == r.Method && p.of.query == r.URL.RawQuery &&
		slices.Equal(p.of.accept, r.Header["Accept"])
}

// Parse parses the query and the Accept headers of r. Errors are returned by the methods.
func Parse(r *http.Request) *Parsed {
	p := &Parsed{of: source{r.Method, r.URL.RawQuery, r.Header["Accept"]}}
	if p.Params.Values, p.queryErr = url.ParseQuery(r.URL.RawQuery); p.queryErr != nil {
		p.queryErr = errQuery(p.queryErr)
	}
	p.accept, p.acceptErr = framing.ParseAccept(r.Header.Values("Accept"))
	return p
}

func errQuery(err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "malformed query in the URL: " + err.Error()}
}

// Query returns the parameters, or an error if the query cannot be parsed.
func (p *Parsed) Query() (url.Values, error) { return p.Params.Values, p.queryErr }
