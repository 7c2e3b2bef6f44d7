package apihttp

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// Parsed holds the parts of a request that are parsed once, although several handlers need them.
type Parsed struct {
	of        source
	query     url.Values
	queryErr  error
	accept    []framing.MediaRange
	acceptErr error
	fields    *listwatch.FieldSelector // nil until it is needed
	fieldsErr error
	projected projected
}

// projected is the parameter fields.
type projected struct {
	parsed     bool
	projection listwatch.Projection
	err        error
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
	if p.query, p.queryErr = url.ParseQuery(r.URL.RawQuery); p.queryErr != nil {
		p.queryErr = errQuery(p.queryErr)
	}
	p.accept, p.acceptErr = framing.ParseAccept(r.Header.Values("Accept"))
	return p
}

func errQuery(err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "malformed query in the URL: " + err.Error()}
}

// Query returns the parameters in the query of the URL, or in the body of a QUERY.
func (p *Parsed) Query() (url.Values, error) { return p.query, p.queryErr }

// Fields returns the parameter fieldSelector.
func (p *Parsed) Fields() (listwatch.FieldSelector, error) {
	if p.fields == nil {
		p.fields = new(listwatch.FieldSelector)
		*p.fields, p.fieldsErr = listwatch.ParseFieldSelector(p.query.Get("fieldSelector"))
	}
	return *p.fields, p.fieldsErr
}

// Conflation returns the parameter conflate of a watch; see [listwatch.Query].
func (p *Parsed) Conflation() (time.Duration, error) {
	return listwatch.ParseConflation(p.query.Get("conflate"))
}

// Projection returns the parameter fields. It is an error in a write, because a client that shows
// only some members must not seem to write only those.
func (p *Parsed) Projection() (listwatch.Projection, error) {
	if !p.projected.parsed {
		p.projected.parsed = true
		p.projected.projection, p.projected.err = p.parseProjection()
	}
	return p.projected.projection, p.projected.err
}

func (p *Parsed) parseProjection() (listwatch.Projection, error) {
	projection, err := listwatch.ParseProjection(p.query.Get("fields"))
	if err == nil && !projection.Empty() && p.of.method != http.MethodGet && p.of.method != http.MethodHead {
		err = &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: "fields: not allowed with " + p.of.method + ": use PATCH without it, or write the whole object",
		}
	}
	return projection, err
}

// WantsWatch reports whether the query requests a watch. It does not validate the value of the
// parameter.
func (p *Parsed) WantsWatch() bool {
	value := p.query.Get("watch")
	return p.query.Has("watch") && value != "0" && !strings.EqualFold(value, "false")
}
