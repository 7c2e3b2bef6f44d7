package kubeapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/watchserver"
)

// ServeHTTP serves the API. Errors are sent as a Kubernetes Status.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isProbe(r.URL.Path) {
		r = apihttp.WithoutCredentials(r)
	}
	if h.Server.Access.Authenticator == nil && watchserver.UserOf(r.Context()).Name == "" {
		r = r.WithContext(watchserver.WithUser(r.Context(), Anonymous()))
	}
	h.Server.Gate(apihttp.HandlerFunc(h.serve)).ServeHTTP(w, r)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	// Each of these functions serves some paths, and returns false for all other paths.
	for _, serve := range []func(http.ResponseWriter, *http.Request, *apihttp.Admitted) (found bool, err error){
		h.serveHealth, h.serveIndex, h.serveDiscovery, h.serveOpenAPI, h.serveReviews, h.serveUnion,
	} {
		if found, err := serve(w, r, a); found {
			return err
		}
	}
	return h.serveResource(w, r, a)
}

// UnionPath is the path of lists and watches of several resources; see [watchserver.Server.Union].
// Each resource has the permissions of its own path.
const UnionPath = "/watch"

func (h *Handler) serveUnion(w http.ResponseWriter, r *http.Request, _ *apihttp.Admitted) (found bool, err error) {
	if found = r.URL.Path == UnionPath; found {
		h.Server.Union(h).ServeHTTP(w, r)
	}
	return found, nil
}

// serveResource serves a path of a resource.
func (h *Handler) serveResource(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	t, ok := ParseRoute(r.URL.EscapedPath())
	if !ok {
		return noSuchPath(r)
	}
	s := h.findResource(t.Group, t.Version, t.Plural)
	if s == nil || s.scopeMismatch(t) {
		return noSuchPath(r)
	}
	if t.Subresource != "" && (t.Watch || !s.hasSubresource(t.Subresource)) {
		return noSuchSubresource(r, s.Resource, t)
	}
	columns := s.table
	if t.Subresource == "scale" {
		columns = s.scale.table
	}
	a.Resource = s.described()
	query, _ := a.Query() // the request is refused if it does not parse
	a.Represent = columns.Represent(query)
	a.NoCompression = a.NoCompression || s.NoCompression
	c := call{
		servedResource: s, Route: t, collection: s.collection, admitted: a, started: time.Now(),
		warn: func(text string) { warn(w, text) },
	}
	c.verb = c.verbOf(r)
	if c.verb == "" {
		err := apihttp.MethodNotAllowed(r, rest.Methods(c.allowedVerbs()))
		listwatch.AsError(err).Details = &listwatch.Details{Group: c.Group, Kind: c.Plural}
		return err
	}
	return h.serveCall(w, r, c)
}

// serveCall serves a request with a verb.
func (h *Handler) serveCall(w http.ResponseWriter, r *http.Request, c call) error {
	// Ignore the error here, because the endpoint rejects a selector that does not parse.
	fields, _ := c.admitted.Params.Fields()
	isRead := c.verb == "list" || c.verb == "watch"
	attributes := c.attributes()
	if isRead && attributes.Name == "" {
		attributes.Name, _ = fields.Equality(listwatch.FieldName)
	}
	scope, err := h.rights(r.Context(), watchserver.UserOf(r.Context()), attributes)
	if err != nil {
		return err
	}
	if h.Scope != nil {
		c.collection = c.collection.Within(scope)
	}
	if !isRead {
		return h.getOrWrite(w, r, c)
	}
	if err := c.checkSelectedFields(fields); err != nil {
		return err
	}
	e := watchserver.Endpoint{
		Source: c.collection, Selection: listwatch.Selection{Namespace: c.Namespace, Name: c.Name}, Watch: c.Watch,
		SharedCompression: c.SharedCompression,
	}
	if h.Authorize != nil || h.Scope != nil {
		e.Recheck = func(ctx context.Context, user User) error {
			now, err := h.rights(ctx, user, attributes)
			return cmp.Or(err, apihttp.CheckScope(scope, now))
		}
	}
	h.Server.Serve(w, r, e)
	return nil
}

// rights returns the scope of the user. If the user may not make the request, it returns the error
// to send.
func (h *Handler) rights(ctx context.Context, user User, a *Attributes) (scope listwatch.Selection, err error) {
	if err := h.authorize(ctx, user, a); err != nil || h.Scope == nil {
		return scope, err
	}
	scope, err = h.Scope(ctx, user, *a)
	return scope, apihttp.Refusal(listwatch.Forbidden, err)
}

// getOrWrite serves any verb except list and watch.
func (h *Handler) getOrWrite(w http.ResponseWriter, r *http.Request, c call) (err error) {
	if c.verb == "get" {
		if err := c.admitted.Begin(); err != nil {
			return err
		}
	}
	// Choose the representation before any write, so that the write is rejected if the
	// client could not read its response.
	if c.form, err = c.admitted.ChooseBody(c.verb == "deletecollection"); err != nil {
		return err
	}
	switch c.verb {
	case "get":
		return c.get(w, r)
	case "create":
		return h.create(w, r, c)
	case "update":
		return h.replace(w, r, c)
	case "patch":
		return h.patch(w, r, c)
	case "delete":
		return h.delete(w, r, c)
	}
	return h.deleteCollection(w, r, c)
}
