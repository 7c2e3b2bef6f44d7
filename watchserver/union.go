package watchserver

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/transport"
)

// maxParts is the maximum number of collections in a union.
const maxParts = 32

// A union is a request for several collections.
type union struct {
	server   *Server
	routes   http.Handler
	admitted *apihttp.Admitted
	parts    []*unionPart
}

// A unionPart is the request for one collection of a union.
type unionPart struct {
	of string
	// Set by Server.serve, if the URL leads to it.
	server   *Server
	user     User
	endpoint Endpoint
	request  request
}

func (u *union) serve(w http.ResponseWriter, r *http.Request) (*stream, *transport.Stream, error) {
	query, err := u.admitted.Query()
	if err != nil {
		return nil, nil, err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, nil, apihttp.MethodNotAllowed(r, "GET, HEAD, QUERY")
	}
	if unionPartOf(r) != nil {
		return nil, nil, badParameter("of: a union cannot be a part of a union")
	}
	for _, name := range append(rest.Names(rest.Selects), "continue") {
		if query.Has(name) {
			return nil, nil, badParameter("%s: has no meaning for several collections; selectors and fields belong to the URLs in of", name)
		}
	}
	if n := len(query["of"]); n == 0 || n > maxParts {
		return nil, nil, badParameter("of: given %d times; must be the URLs of 1 to %d collections", n, maxParts)
	}
	refusal, err := u.route(r, query["of"])
	switch {
	case err != nil:
		return nil, nil, err
	case refusal != nil:
		refusal.copyTo(w)
		return nil, nil, nil
	}
	e, err := u.endpoint(UserOf(r.Context()))
	if err != nil {
		return nil, nil, err
	}
	return u.server.serve(w, r, u.admitted, e)
}

func badParameter(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}

// route finds the collections of all URLs. If one of the URLs is refused, route returns the
// response to that URL.
func (u *union) route(r *http.Request, urls []string) (refusal *recorder, err error) {
	// The requests for the parts pass the gate as r has, and leave their traces in a.
	a := u.admitted
	parsed, resource, represent := a.Parsed, a.Resource, a.Represent
	defer func() { a.Parsed, a.Resource, a.Represent = parsed, resource, represent }()
	for _, of := range urls {
		p := &unionPart{of: of}
		request, err := p.newRequest(r, parsed.Params.WantsWatch())
		if err != nil {
			return nil, err
		}
		a.Resource, a.Represent = apihttp.Resource{}, nil
		response := &recorder{header: make(http.Header), code: http.StatusOK}
		u.routes.ServeHTTP(response, request)
		switch {
		case p.server == nil && response.code >= http.StatusBadRequest:
			return response, nil
		case p.server != u.server:
			return nil, badParameter("of: %q is not the URL of a collection", of)
		}
		u.parts = append(u.parts, p)
	}
	return nil, nil
}

type unionPartKey struct{}

// unionPartOf returns the part that r is the request for, or nil.
func unionPartOf(r *http.Request) *unionPart {
	p, _ := r.Context().Value(unionPartKey{}).(*unionPart)
	return p
}

// newRequest returns the request for p as a part of the union r.
func (p *unionPart) newRequest(r *http.Request, watch bool) (*http.Request, error) {
	of, err := url.Parse(p.of)
	if err != nil || of.Scheme != "" || of.Host != "" || of.User != nil || of.Fragment != "" || of.Path == "" ||
		of.Path[0] != '/' {
		return nil, badParameter("of: %q must be a URL that begins with a path, such as /api/v1/pods", p.of)
	}
	query, err := url.ParseQuery(of.RawQuery)
	if err != nil {
		return nil, badParameter("of: %q has a malformed query", p.of)
	}
	for name := range query {
		if rest.RoleOf(name) != rest.Selects {
			return nil, badParameter("of: %q has the parameter %q, but may have only labelSelector, fieldSelector and "+
				"fields; all other parameters belong to the union", p.of, name)
		}
	}
	if watch {
		query.Set("watch", "1")
	}
	part := r.Clone(context.WithValue(r.Context(), unionPartKey{}, p))
	part.URL.Path, part.URL.RawPath, part.URL.RawQuery = of.Path, of.RawPath, query.Encode()
	part.RequestURI = part.URL.RequestURI()
	part.Header.Del("Last-Event-ID")
	part.Pattern, part.Body, part.ContentLength, part.TransferEncoding = "", http.NoBody, 0, nil
	return part, nil
}

// recheck returns the function that checks the rights for p while the union is open, or nil. If
// routes has identified a user other than user, the user of the union, the function checks that
// other user.
func (p *unionPart) recheck(user User) authorizer {
	check := p.endpoint.recheck()
	if p.user.Name == user.Name {
		return check
	}
	return func(ctx context.Context, _ User) error {
		now, err := p.user.current()
		if err != nil {
			return err
		}
		return check.check(ctx, now)
	}
}

// endpoint returns the endpoint of the union for user.
func (u *union) endpoint(user User) (e Endpoint, err error) {
	var database listwatch.Uniter
	var projections []string
	parts := make([]listwatch.Part, len(u.parts))
	checks := make([]authorizer, 0, len(u.parts))
	for i, p := range u.parts {
		var ok bool
		if database, ok = p.endpoint.Source.(listwatch.Uniter); !ok {
			return e, badParameter("of: %q is served from a %T, but a union needs collections of one database "+
				"in memory, in a file or in PostgreSQL", p.of, p.endpoint.Source)
		}
		if p.request.Watch && !u.admitted.Params.WantsWatch() {
			return e, badParameter("of: %q is the URL of a watch; use the URL of the collection", p.of)
		}
		parts[i] = listwatch.Part{Source: p.endpoint.Source, Selection: p.request.Selection}
		if shown := p.request.Projection; !shown.Empty() {
			kind := listwatch.Describe(p.endpoint.Source).Kind
			projections = append(projections, kind+" "+shown.String())
		}
		if check := p.recheck(user); check != nil {
			checks = append(checks, check)
		}
		if until := p.endpoint.Until; !until.IsZero() && (e.Until.IsZero() || until.Before(e.Until)) {
			e.Until, e.UntilError = until, p.endpoint.UntilError
		}
	}
	if len(checks) > 0 {
		e.Recheck = func(ctx context.Context, user User) error {
			for _, check := range checks {
				if err := check.check(ctx, user); err != nil {
					return err
				}
			}
			return nil
		}
	}
	e.projections = strings.Join(projections, "\n")
	e.Source, err = database.Union(parts...)
	return e, err
}

// A recorder keeps a small response, such as an error.
type recorder struct {
	header  http.Header
	code    int
	written bool
	body    bytes.Buffer
}

// maxRecorded is enough for the Status of any error.
const maxRecorded = 64 << 10

// Header implements [http.ResponseWriter].
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(code int) {
	if !r.written && code >= http.StatusOK {
		r.code, r.written = code, true
	}
}

// Write implements [http.ResponseWriter].
func (r *recorder) Write(p []byte) (int, error) {
	r.written = true
	if r.body.Len()+len(p) > maxRecorded {
		return 0, http.ErrContentLength
	}
	return r.body.Write(p)
}

// copyTo sends the response to w.
func (r *recorder) copyTo(w http.ResponseWriter) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.code)
	_, _ = w.Write(r.body.Bytes()) // an error means that the client has disconnected
}
