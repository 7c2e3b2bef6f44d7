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
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A Handler is an [http.Handler] that serves any number of resources. The zero Handler is
// ready for [Handler.Add]. After the first request its fields must not be changed and no
// resource may be added. It must not be copied.
type Handler struct {
	// Server serves the lists and watches of all resources and holds their limits. Its
	// Source is not used. Writes from web pages of other origins are rejected unless
	// Server.AllowOrigins matches.
	Server watchserver.Server
	// Authenticate identifies the user of each request before anything else happens. If nil,
	// Server.Authenticator is used. If that is nil too, every user is [Anonymous].
	Authenticate Authenticator
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
	h.Server.Stored = append(h.Server.Stored, c)
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
	watchserver.GuardBody(w, r)
	if err := h.Server.CheckRequest(r); err != nil {
		h.Server.Refuse(w, r, err)
		return
	}
	if h.serveHealth(w, r) {
		return
	}
	user, err := h.authenticate(r)
	if err == nil {
		r = r.WithContext(watchserver.WithUser(r.Context(), user))
		err = h.serve(w, r, user)
	}
	if err != nil {
		h.Server.Refuse(w, r, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, user User) error {
	if err := watchserver.CheckOrigin(r, h.Server.AllowOrigins); err != nil {
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
	switch r.URL.Path {
	case accessReviews.Path(""):
		return h.review(w, r, user, accessReviews, h.reviewAccess)
	case rulesReviews.Path(""):
		return h.review(w, r, user, rulesReviews, h.reviewRules)
	}
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
	if s.NoCompression || h.Server.NoCompression {
		r = transport.WithoutCompression(r)
	}
	r = r.WithContext(watchserver.WithResource(r.Context(), watchserver.Resource{Group: s.Group, Version: s.Version, Name: s.Plural}))
	// Refuse the request here and not in ServeHTTP, because only this r has the resource in its
	// context, which the hooks of h.Server receive.
	if err := h.dispatch(w, r, resourceRequest{servedResource: s, route: t, started: time.Now()}, user); err != nil {
		h.Server.Refuse(w, r, err)
	}
	return nil
}

// A resourceRequest is a request whose path names a served resource.
type resourceRequest struct {
	servedResource
	route
	// representation is the form of the objects in the response. If nil, the objects are
	// sent unchanged. mediaType is the type of the response.
	representation watchserver.ListRepresentation
	mediaType      string
	started        time.Time
	bodyBytes      int               // the size of the request body; 0 until it was read
	isApply        bool              // the request is a server-side apply
	warn           func(text string) // adds a warning to the response
}

func (c resourceRequest) key() listwatch.Key {
	return listwatch.Key{Namespace: c.namespace, Name: c.name}
}

// dispatch determines the verb, checks that the user may use it, and executes it.
func (h *Handler) dispatch(w http.ResponseWriter, r *http.Request, c resourceRequest, user User) error {
	verb := c.verb(r)
	if verb == "" {
		err := watchserver.MethodNotAllowed(r, c.allowedMethods())
		listwatch.AsError(err).Details = &listwatch.Details{Group: c.Group, Kind: c.Plural}
		return err
	}
	attributes := c.attributes(r, verb)
	if verb == "list" || verb == "watch" {
		// Ignore the error here, because the endpoint rejects a selector that does not parse.
		fields, _ := listwatch.ParseFieldSelector(r.URL.Query().Get("fieldSelector"))
		if err := c.checkSelectedFields(fields); err != nil {
			return cmp.Or(h.authorize(r.Context(), user, attributes), err)
		}
		e := watchserver.Endpoint{
			Source: c.collection, Namespace: c.namespace, Name: c.name, Watch: c.watch, Represent: c.table.Represent(r),
			SharedCompression: c.SharedCompression,
		}
		if h.Authorize != nil {
			e.Authorize = func(ctx context.Context, user User) error { return h.authorize(ctx, user, attributes) }
		}
		h.Server.Serve(w, r, e)
		return nil
	}
	if err := h.authorize(r.Context(), user, attributes); err != nil {
		return err
	}
	if c.subresource == "scale" {
		c.table = c.scale.table
	}
	r, end, err := h.Server.Begin(r)
	if err != nil {
		return err
	}
	defer end()
	// Choose the representation before any write, so that the write is rejected if the
	// client could not read its response.
	offer := c.table.Represent(r)
	if c.representation, c.mediaType, err = watchserver.ChooseRepresentation(r, func(params map[string]string, _ bool) (watchserver.ListRepresentation, error) {
		return offer(params, verb == "deletecollection")
	}); err != nil {
		return err
	}
	c.warn = func(text string) { warn(w, text) }
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

// wrote reports the write of o, or of the whole collection if o is nil, to the hooks of the Server.
func (h *Handler) wrote(r *http.Request, c resourceRequest, to *store.Collection, o *listwatch.Object) {
	change := watchserver.Change{Verb: c.verb(r), Key: c.key(), DryRun: to != c.collection, Took: time.Since(c.started)}
	if o != nil {
		change.Key, change.Version = o.Key, o.Version
	}
	h.Server.TraceChange(r, change)
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
