package kubeapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A Handler is an [http.Handler] that serves any number of resources. The zero Handler is
// ready for [Handler.Add]. After the first request its fields must not be changed and no
// resource may be added. It must not be copied.
type Handler struct {
	// Server admits all requests, serves the lists and watches of all resources, and holds their
	// limits. Its Source is not used. Without Server.Access.Authenticator, every user is
	// [Anonymous]. Writes from web pages of other origins are rejected unless Server.Access.Origins
	// matches.
	Server watchserver.Server
	// Authorize decides whether the user is allowed to make the request. If nil, everything
	// is allowed.
	Authorize Authorizer
	// RulesFor returns what Authorize allows the user in a namespace, for clients that send a
	// SelfSubjectRulesReview, such as kubectl auth can-i --list. If RulesFor returns an error, the
	// review contains it. If RulesFor is nil and Authorize is not, reviews are marked as
	// incomplete.
	RulesFor func(ctx context.Context, user User, namespace string) (Rules, error)
	// MaxBodyBytes limits the size of request bodies. If zero, [DefaultMaxBodyBytes] is
	// used, as in kube-apiserver. A negative value disables the limit. Larger bodies are
	// rejected with status 413.
	MaxBodyBytes int64
	// MaxYAMLBytes limits the size of YAML bodies that are not JSON, because parsing a YAML body
	// takes memory of more than a hundred times its size. At most two bodies are parsed at once. If
	// zero, [DefaultMaxYAMLBytes] is used. If negative, only MaxBodyBytes counts. Larger bodies are
	// rejected with status 413.
	MaxYAMLBytes int64
	// Ready returns an error if the server is not ready. /readyz sends the error's text to
	// any client. If Ready is nil, the server is ready until Drain is called.
	Ready func() error

	// Immutable once in use.
	resources []servedResource
	openAPI   openAPI

	draining atomic.Bool
}

// The defaults of the limits of a [Handler].
const (
	DefaultMaxBodyBytes = 3 << 20   // 3 MiB, see [Handler.MaxBodyBytes]
	DefaultMaxYAMLBytes = 256 << 10 // 256 KiB, see [Handler.MaxYAMLBytes]
)

// A servedResource is a resource with its collection, columns and scale.
type servedResource struct {
	Resource
	collection *store.Collection
	table      *table.Table
	scale      *scaleSpec // nil if the objects have no scale subresource
	// applier returns the Manager of server-side apply. The first call creates it.
	applier func() (*apply.Manager, error)
}

// Add serves the collection c as resource r. It returns an error of code AlreadyExists if
// another resource has the path of r. It returns an error of code Invalid if clients could
// not reach r or could not distinguish it from another resource, or if its columns or scale
// are invalid.
func (h *Handler) Add(r Resource, c *store.Collection) error {
	if err := r.validate(); err != nil {
		return err
	}
	for _, s := range h.discovered() {
		if err := r.checkConflict(s); err != nil {
			return err
		}
	}
	t, err := table.New(r.Columns)
	if err != nil {
		return err
	}
	s := servedResource{Resource: r.withDefaults(), collection: c, table: t}
	if r.Scale != nil {
		age := table.AgeColumn()
		// As in Kubernetes, the Age column of a custom resource's scale has type "date" instead of
		// "string".
		if r.Custom {
			age = table.Column{Name: "Age", Type: "date", Path: ".metadata.creationTimestamp"}
		}
		if s.scale, err = r.Scale.compile(age); err != nil {
			return err
		}
	}
	s.applier = sync.OnceValues(func() (*apply.Manager, error) {
		return apply.New(s.Schema, kubeschema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
	})
	h.resources = append(h.resources, s)
	h.Server.Limits.Stored = append(h.Server.Limits.Stored, c)
	return nil
}

// Resources returns the served resources in the order in which they were added.
func (h *Handler) Resources() []Resource {
	all := make([]Resource, len(h.resources))
	for i, s := range h.resources {
		all[i] = s.Resource
	}
	return all
}

// Collection returns the collection served as r, or nil if there is none.
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

// Drain makes /readyz fail and ends every watch; see [watchserver.Server.Drain]. Shut down
// the [http.Server] after it.
func (h *Handler) Drain(ctx context.Context) error {
	h.draining.Store(true)
	return h.Server.Drain(ctx)
}

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
	// Each of these functions serves some paths, and returns false for the others.
	for _, serve := range []func(http.ResponseWriter, *http.Request, *apihttp.Admitted) (found bool, err error){
		h.serveHealth, h.serveIndex, h.serveDiscovery, h.serveOpenAPI, h.serveReviews,
	} {
		if found, err := serve(w, r, a); found {
			return err
		}
	}
	return h.serveResource(w, r, a)
}

// A resourceRequest is a request whose path names a served resource.
type resourceRequest struct {
	servedResource
	route
	admitted *apihttp.Admitted
	verb     string // Kubernetes' verb, or "" if the path does not allow the method
	// representation is the form of the objects in the response. If nil, the objects are
	// sent unchanged. mediaType is the type of the response.
	representation apihttp.ListRepresentation
	mediaType      string
	started        time.Time
	bodyBytes      int               // the size of the request body; 0 until it was read
	isApply        bool              // the request is a server-side apply
	warn           func(text string) // adds a warning to the response
}

func (c resourceRequest) key() listwatch.Key {
	return listwatch.Key{Namespace: c.namespace, Name: c.name}
}

// serveResource serves a path of a resource.
func (h *Handler) serveResource(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	t, ok := parseRoute(r.URL.EscapedPath())
	if !ok {
		return noSuchPath(r)
	}
	s, ok := h.findResource(t.group, t.version, t.plural)
	if !ok || s.scopeMismatch(t) {
		return noSuchPath(r)
	}
	if t.subresource != "" && (t.watch || !s.hasSubresource(t.subresource)) {
		return noSuchSubresource(r, s.Resource, t)
	}
	if t.subresource == "scale" {
		s.table = s.scale.table
	}
	a.Resource = s.described()
	a.Represent = s.table.Represent(r)
	a.NoCompression = a.NoCompression || s.NoCompression
	c := resourceRequest{
		servedResource: s, route: t, admitted: a, started: time.Now(), warn: func(text string) { warn(w, text) },
	}
	c.verb = c.verbOf(r)
	switch c.verb {
	case "":
		err := apihttp.MethodNotAllowed(r, c.allowedMethods())
		listwatch.AsError(err).Details = &listwatch.Details{Group: c.Group, Kind: c.Plural}
		return err
	case "list", "watch":
		return h.listOrWatch(w, r, c)
	}
	return h.readOrWrite(w, r, c)
}

// listOrWatch serves a list or a watch through the Server, which authorizes it.
func (h *Handler) listOrWatch(w http.ResponseWriter, r *http.Request, c resourceRequest) error {
	// Ignore the error here, because the endpoint rejects a selector that does not parse.
	fields, _ := c.admitted.Fields()
	attributes := c.attributes()
	if attributes.Name == "" {
		attributes.Name, _ = fields.Equality(listwatch.FieldName)
	}
	if err := c.checkSelectedFields(fields); err != nil {
		return cmp.Or(h.authorize(r.Context(), watchserver.UserOf(r.Context()), attributes), err)
	}
	e := watchserver.Endpoint{
		Source: c.collection, Namespace: c.namespace, Name: c.name, Watch: c.watch, SharedCompression: c.SharedCompression,
	}
	if h.Authorize != nil {
		e.Authorize = func(ctx context.Context, user User) error { return h.authorize(ctx, user, attributes) }
	}
	h.Server.Serve(w, r, e)
	return nil
}

// readOrWrite serves any other verb.
func (h *Handler) readOrWrite(w http.ResponseWriter, r *http.Request, c resourceRequest) (err error) {
	if err := h.authorize(r.Context(), watchserver.UserOf(r.Context()), c.attributes()); err != nil {
		return err
	}
	if err := c.admitted.Begin(); err != nil {
		return err
	}
	// Choose the representation before any write, so that the write is rejected if the
	// client could not read its response.
	if c.representation, c.mediaType, err = c.admitted.ChooseBody(c.verb == "deletecollection"); err != nil {
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

// wrote reports the write of o, or of the whole collection if o is nil, to the hooks of the Server.
func (c resourceRequest) wrote(r *http.Request, to *store.Collection, o *listwatch.Object) {
	change := apihttp.Change{Verb: c.verb, Key: c.key(), DryRun: to != c.collection, Took: time.Since(c.started)}
	if o != nil {
		change.Key, change.Version = o.Key, o.Version
	}
	c.admitted.Changed(r, change)
}

func noSuchSubresource(r *http.Request, s Resource, t route) error {
	err := noSuchPath(r)
	listwatch.AsError(err).Details = &listwatch.Details{Name: t.name, Group: s.Group, Kind: s.Plural}
	return err
}

func noSuchPath(r *http.Request) error {
	return &listwatch.Error{
		Code:    listwatch.NotFound,
		Message: "the server could not find the requested resource: " + r.URL.Path,
		Details: &listwatch.Details{},
	}
}
