package kubeapi

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
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
	// Scope returns the part of the requested resource that exists for the user, such as the
	// objects of the user's tenant. Reads and writes obey it; see [store.Collection.Within]. An
	// error is handled as an error of Authorize. [watchserver.Server.Recheck] calls Scope again for
	// each open watch. If the scope has changed, the watch ends with status 410, so that the client
	// lists again. If nil, all objects exist for every user.
	Scope func(ctx context.Context, user User, a Attributes) (listwatch.Selection, error)
	// RulesFor returns the requests that Authorize allows to the user in a namespace, for clients
	// that send a SelfSubjectRulesReview, such as kubectl auth can-i --list. If RulesFor returns an
	// error, the review contains it. If RulesFor is nil and Authorize is not, reviews are marked as
	// incomplete.
	RulesFor func(ctx context.Context, user User, namespace string) (Rules, error)
	// MaxBodyBytes limits the size of request bodies. If zero, [DefaultMaxBodyBytes] is
	// used, as in kube-apiserver. A negative value disables the limit. Larger bodies are
	// rejected with status 413.
	MaxBodyBytes int64
	// MaxYAMLBytes limits the size of YAML bodies that are not JSON, because parsing YAML takes
	// more than a hundred times the memory of the body. At most two bodies are parsed at once. If
	// zero, [DefaultMaxYAMLBytes] is used. If negative, only MaxBodyBytes counts. Larger bodies are
	// rejected with status 413.
	MaxYAMLBytes int64
	// Collected is true if a garbage collector runs over the collections. A delete with the
	// propagation policy Orphan or Foreground then marks the object with the finalizer "orphan" or
	// "foregroundDeletion", which the collector must remove (Kubernetes, "Garbage Collection"); see
	// [Deletion]. If false, propagation policies have no effect.
	Collected bool
	// ManagedFields is true if objects have metadata.managedFields from their creation on, as in
	// Kubernetes. If false, an object has them from its first apply on, or from the first write
	// that sends some. Then the other writes take a fifth of the time.
	ManagedFields bool
	// Ready returns an error if the server is not ready. /readyz sends to any client the text of a
	// [listwatch.Cause] or the Message of a *listwatch.Error, and otherwise "the server is not
	// ready". If Ready is nil, the server is ready until Drain is called.
	Ready func() error

	// Immutable once in use.
	resources []*servedResource
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
	protobuf   lazyView
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
	others := []*Resource{&accessReviews, &rulesReviews}
	for _, s := range h.resources {
		others = append(others, &s.Resource)
	}
	for _, other := range others {
		if err := r.checkConflict(other); err != nil {
			return err
		}
	}
	t, err := table.New(r.Columns)
	if err != nil {
		return err
	}
	s := &servedResource{Resource: r.withDefaults(), collection: c, table: t}
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
	s.protobuf.apiVersion, s.protobuf.kind = s.APIVersion(), s.Kind
	s.applier = sync.OnceValues(func() (*apply.Manager, error) { return newApplier(s.Resource) })
	h.serveAlso(s)
	return nil
}

// AddFrom serves c in the same way as other, which h is to replace. It reports whether other serves
// c. It is faster than Add, because it checks nothing.
func (h *Handler) AddFrom(other *Handler, c *store.Collection) bool {
	i := slices.IndexFunc(other.resources, func(s *servedResource) bool { return s.collection == c })
	if i < 0 {
		return false
	}
	h.serveAlso(other.resources[i])
	return true
}

func (h *Handler) serveAlso(s *servedResource) {
	h.Server.Framings = cmp.Or(h.Server.Framings, streams)
	h.resources = append(h.resources, s)
	h.Server.Limits.Stored = append(h.Server.Limits.Stored, &s.protobuf)
	if !isView(s.collection) { // otherwise its objects belong to another collection
		h.Server.Limits.Stored = append(h.Server.Limits.Stored, s.collection)
	}
}

// Resources returns the served resources in the order in which they were added.
func (h *Handler) Resources() []Resource {
	all := make([]Resource, len(h.resources))
	for i, s := range h.resources {
		all[i] = s.Resource
	}
	return all
}

// discovered returns the resources that discovery lists.
func (h *Handler) discovered() []*Resource {
	all := make([]*Resource, 0, len(h.resources)+2)
	for _, s := range h.resources {
		all = append(all, &s.Resource)
	}
	return append(all, &accessReviews, &rulesReviews)
}

// Collection returns the collection served as r, or nil if there is none.
func (h *Handler) Collection(r Resource) *store.Collection {
	s := h.findResource(r.Group, r.Version, r.Plural)
	if s == nil {
		return nil
	}
	return s.collection
}

// findResource returns the resource, or nil if it is not served.
func (h *Handler) findResource(group, version, plural string) *servedResource {
	for _, s := range h.resources {
		if s.Group == group && s.Version == version && s.Plural == plural {
			return s
		}
	}
	return nil
}

// Drain makes /readyz fail and ends every watch; see [watchserver.Server.Drain]. Shut down
// the [http.Server] after it.
func (h *Handler) Drain(ctx context.Context) error {
	h.draining.Store(true)
	return h.Server.Drain(ctx)
}
