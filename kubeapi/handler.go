package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A Handler is an [http.Handler] for any number of resources. The zero Handler is ready for [Handler.Add]. Fields must not be changed
// and nothing added once it is in use; it must not be copied.
type Handler struct {
	// Server serves the lists and watches of all resources: it holds the limits. Its Source is not used. Pages of foreign
	// origins that Server.AllowOrigins does not match may not write.
	Server watchserver.Server
	// Authenticate says who is asking, before anything else is done with a request. Nil: nobody is asked.
	Authenticate Authenticator
	// Authorize says what they may do; nil: everything.
	Authorize Authorizer
	// BodyBytes bounds the bodies of requests. Zero: 3 MiB, as in kube-apiserver; negative: no limit. More is answered 413.
	MaxBodyBytes int64
	// Ready says why the server is not ready, for /readyz; its error is shown to whoever asks. Nil: it is, unless it drains.
	Ready func() error

	// Immutable once in use.
	resources []servedResource
	openAPI   openAPI

	draining atomic.Bool
}

// DefaultBodyBytes is the default of [Handler.BodyBytes].
const DefaultMaxBodyBytes = 3 << 20

// served is a resource and what it serves.
type servedResource struct {
	Resource
	collection *store.Collection
	table      *Table
	scale      *scaleSpec // nil: the objects have no scale
}

// Add serves c as r. A resource whose path is taken is an error of code AlreadyExists; one that could not be reached or not be told from
// others, and columns or a scale that make no sense, are one of code Invalid.
func (h *Handler) Add(r Resource, c *store.Collection) error {
	if err := r.validate(); err != nil {
		return err
	}
	for _, s := range h.resources {
		if err := r.checkConflict(s.Resource); err != nil {
			return err
		}
	}
	t, err := New(r.Columns)
	if err != nil {
		return err
	}
	s := servedResource{Resource: r.withDefaults(), collection: c, table: t}
	if r.Scale != nil {
		if s.scale, err = r.Scale.compile(); err != nil {
			return err
		}
	}
	h.resources = append(h.resources, s)
	return nil
}

// Resources returns what is served, in the order in which it was added.
func (h *Handler) Resources() []Resource {
	all := make([]Resource, len(h.resources))
	for i, s := range h.resources {
		all[i] = s.Resource
	}
	return all
}

// Collection returns what is served as r; nil where nothing is.
func (h *Handler) Collection(r Resource) *store.Collection {
	s, _ := h.findResource(r.Group, r.Version, r.Plural)
	return s.collection
}

func (h *Handler) findResource(group, version, plural string) (servedResource, bool) {
	i := slices.IndexFunc(h.resources, func(s servedResource) bool {
		return s.Group == group && s.Version == version && s.Plural == plural
	})
	if i < 0 {
		return servedResource{}, false
	}
	return h.resources[i], true
}

// Drain makes /readyz say no and ends every watch; see [watchserver.Server.Drain]. Shut the [http.Server] down after it.
func (h *Handler) Drain(ctx context.Context) error {
	h.draining.Store(true)
	return h.Server.Drain(ctx)
}

// ServeHTTP serves the API. Errors are answered as a Kubernetes Status.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watchserver.CloseAfterChunkedRequest(w, r)
	if h.serveHealth(w, r) {
		return
	}
	if err := h.serve(w, r); err != nil {
		if t := h.Server.Trace; t != nil && t.Refused != nil {
			t.Refused(r, err)
		}
		watchserver.WriteError(w, r, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	user, err := h.authenticate(r)
	if err != nil {
		return err
	}
	if err := h.checkOrigin(r); err != nil {
		return err
	}
	if r.URL.Path == "/" {
		return h.serveIndex(w, r)
	}
	if found, err := h.serveDiscovery(w, r); found {
		return err
	}
	if found, err := h.serveOpenAPI(w, r); found {
		return err
	}
	t, ok := parseRoute(r.URL.EscapedPath())
	if !ok {
		return noSuchPath(r)
	}
	s, ok := h.findResource(t.group, t.version, t.plural)
	if !ok || s.scopeMismatch(t) || t.subresource != "" && (t.watch || !s.hasSubresource(t.subresource)) {
		return noSuchPath(r)
	}
	if s.NoCompression || h.Server.NoCompression {
		r = transport.WithoutCompression(r)
	}
	return h.dispatch(w, r, resourceRequest{servedResource: s, route: t}, user)
}

// A call is a request for a resource.
type resourceRequest struct {
	servedResource
	route
	representation watchserver.ListRepresentation // of what the answer has in it; nil: as it is
}

func (c resourceRequest) key() listwatch.Key {
	return listwatch.Key{Namespace: c.namespace, Name: c.name}
}

// verbs are what can be done with a resource, as discovery tells it, readVerbs what changes nothing.
var (
	verbs     = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	readVerbs = []string{"get", "list", "watch"}
)

// subresourceVerbs are what can be done with a subresource.
var subresourceVerbs = []string{"get", "patch", "update"}

func (r Resource) verbs() []string {
	if r.ReadOnly {
		return readVerbs
	}
	return verbs
}

func (r Resource) subresourceVerbs() []string {
	if r.ReadOnly {
		return subresourceVerbs[:1]
	}
	return subresourceVerbs
}

// A subresource is a part of every object of a resource, or another view of it, with a path of its own.
type subresource struct {
	name string
	kind groupVersionKind
}

func (r Resource) subresources() []subresource {
	all := []subresource{{"status", r.groupVersionKind()}}
	if r.Scale != nil {
		all = append(all, subresource{"scale", scaleResource.groupVersionKind()})
	}
	return all
}

func (r Resource) hasSubresource(name string) bool {
	return slices.ContainsFunc(r.subresources(), func(s subresource) bool { return s.name == name })
}

// dispatch finds the verb and carries it out, if the user may.
func (h *Handler) dispatch(w http.ResponseWriter, r *http.Request, c resourceRequest, user User) error {
	verb := c.verb(r)
	if verb == "" {
		return notAllowed(w, r, c.allowedMethods())
	}
	if err := h.authorize(r, user, verb, c); err != nil {
		return err
	}
	if c.subresource == "scale" {
		c.table = c.scale.table
	}
	if verb == "list" || verb == "watch" {
		h.Server.Serve(w, r, watchserver.Endpoint{
			Source: c.collection, Namespace: c.namespace, Name: c.name, Watch: c.watch, Represent: c.represent(r),
		})
		return nil
	}
	// Nothing is written that can't be answered as the client wants it.
	var err error
	offer := c.represent(r)
	if c.representation, err = watchserver.ChooseRepresentation(r, func(params map[string]string, _ bool) (watchserver.ListRepresentation, error) {
		return offer(params, verb == "deletecollection")
	}); err != nil {
		return err
	}
	switch verb {
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

// verb returns Kubernetes' word for what r does; empty where the path does not allow the method.
func (c resourceRequest) verb(r *http.Request) string {
	verb := c.verbForMethod(r)
	if c.ReadOnly && !slices.Contains(readVerbs, verb) {
		return ""
	}
	return verb
}

func (c resourceRequest) verbForMethod(r *http.Request) string {
	if c.subresource != "" {
		return subresourceVerb(r.Method)
	}
	switch {
	case c.watch || wantsWatch(r):
		// Methods other than GET are refused by the watch server, unless they are writes with a stray parameter.
		if c.watch || r.Method == http.MethodGet || r.Method == http.MethodHead {
			return "watch"
		}
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		if c.name == "" {
			return "list"
		}
		return "get"
	}
	switch {
	case r.Method == http.MethodPost && c.isCollection():
		return "create"
	case r.Method == http.MethodPut && c.name != "":
		return "update"
	case r.Method == http.MethodPatch && c.name != "":
		return "patch"
	case r.Method == http.MethodDelete && c.name != "":
		return "delete"
	case r.Method == http.MethodDelete && c.isCollection() && !wantsWatch(r):
		return "deletecollection"
	}
	return ""
}

func subresourceVerb(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	}
	return ""
}

// creates reports whether objects can be created at the path: it must say in which namespace.
func (c resourceRequest) isCollection() bool {
	return c.name == "" && (c.namespace != "" || !c.Namespaced)
}

func (c resourceRequest) allowedMethods() string {
	switch {
	case c.ReadOnly:
		return "GET, HEAD"
	case c.subresource != "":
		return "GET, HEAD, PUT, PATCH"
	case c.name != "":
		return "GET, HEAD, PUT, PATCH, DELETE"
	case c.isCollection():
		return "GET, HEAD, POST, DELETE"
	}
	return "GET, HEAD"
}

// asksToWatch reports whether the query does. What its value means, and which values are errors, the watch server says.
func wantsWatch(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("watch") && q.Get("watch") != "0" && !strings.EqualFold(q.Get("watch"), "false")
}

// misplaced reports whether the path has a namespace that the resource has not, or lacks one.
func (s servedResource) scopeMismatch(t route) bool {
	if !s.Namespaced {
		return t.namespace != ""
	}
	return t.namespace == "" && t.name != ""
}

// checkOrigin refuses writes of pages that may not read the answer: a browser sends some of them unasked, without CORS' leave.
func (h *Handler) checkOrigin(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil // WebSocket checks by itself
	}
	if transport.OriginAllowed(r, h.Server.AllowOrigins) {
		return nil
	}
	return &listwatch.Error{
		Code:    listwatch.Forbidden,
		Message: fmt.Sprintf("pages of origin %q may not write here", strings.Join(r.Header.Values("Origin"), ", ")),
	}
}

// notAllowed is a 405, which must say what is allowed (rfc9110#section-15.5.6).
func notAllowed(w http.ResponseWriter, r *http.Request, allow string) error {
	w.Header().Set("Allow", allow)
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
		Message: fmt.Sprintf("%s is not allowed on %s, only %s", r.Method, r.URL.Path, allow),
	}
}

func noSuchPath(r *http.Request) error {
	return &listwatch.Error{
		Code:    listwatch.NotFound,
		Message: "the server could not find the requested resource: " + r.URL.Path,
		Details: &listwatch.Details{},
	}
}
