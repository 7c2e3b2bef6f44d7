package kubeapi

import (
	"context"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/access"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
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
		if s.Warning != "" {
			warn(w, s.Warning)
		}
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
		servedResource: s, Route: t, tracksAll: h.ManagedFields, warn: func(text string) { warn(w, text) },
		Call: access.Call{
			Admitted: a, Key: listwatch.Key{Namespace: t.Namespace, Name: t.Name}, Collection: s.collection,
			Started: time.Now(),
		},
	}
	c.Verb = c.verbOf(r)
	if h.prefersProtobuf(r, c, query) {
		if view := s.protobuf.get(); view != nil {
			a.Represent, c.View = kubeproto.Represent, view.Source
		}
	}
	if c.Verb == "" {
		err := apihttp.MethodNotAllowed(r, rest.Methods(c.allowedVerbs()))
		listwatch.AsError(err).Details = &listwatch.Details{Group: c.Group, Kind: c.Plural}
		return err
	}
	return h.serveCall(w, r, c)
}

// serveCall serves a request with a verb.
func (h *Handler) serveCall(w http.ResponseWriter, r *http.Request, c call) error {
	// Ignore the error here, because the endpoint rejects a selector that does not parse.
	fields, _ := c.Admitted.Params.Fields()
	isRead := c.Verb == "list" || c.Verb == "watch"
	attributes := c.attributes()
	if isRead && attributes.Name == "" {
		attributes.Name, _ = fields.Equality(listwatch.FieldName)
	}
	if err := c.Restrict(r.Context(), h.rights(attributes)); err != nil {
		return err
	}
	if c.Warning != "" {
		c.warn(c.Warning)
	}
	if isRead {
		if err := c.checkSelectedFields(fields); err != nil {
			return err
		}
		c.Read(w, r, &h.Server, watchserver.Endpoint{Watch: c.Watch, SharedCompression: c.SharedCompression})
		return nil
	}
	if err := c.Begin(); err != nil {
		return err
	}
	switch c.Verb {
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

// rights returns the rights of users to a request, or nil if every user may do everything.
func (h *Handler) rights(a *Attributes) access.Rights {
	if h.Authorize == nil && h.Scope == nil {
		return nil
	}
	return func(ctx context.Context, user User) (scope listwatch.Selection, err error) {
		if err := h.authorize(ctx, user, a); err != nil || h.Scope == nil {
			return scope, err
		}
		scope, err = h.Scope(ctx, user, *a)
		return scope, apihttp.Refusal(listwatch.Forbidden, err)
	}
}
