package crudserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/access"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// A Handler is an [http.Handler] that serves one collection. Do not change its fields after the
// first request, and do not copy it.
//
// The gate of Server admits each request, and identifies its user. Without Authorize and Scope, any
// user may read and write everything.
type Handler struct {
	// Path is the path of the collection in URLs, without escapes, such as "/flags". If empty,
	// "/" is used.
	Path string
	// Collection holds the objects. For the result of memory.New, [store.CollectionOf] returns it.
	Collection *store.Collection
	// Server serves the lists and watches, with its limits. Its Source is not used, so several
	// Handlers can share a Server and its Drain. Writes from web pages of other origins are refused
	// unless the Server's Access.Origins match. If Server is nil, a Server with defaults is used.
	Server *watchserver.Server
	// Authorize returns an error if the user may not make a request. Its text is sent only if it is
	// a [listwatch.Cause], or as the Message of a *listwatch.Error. The error is sent with status
	// 403 unless it has another code. verb is one of Kubernetes' verbs get, list, watch, create,
	// update, patch and delete. key holds the namespace and the name in the path; both may be
	// empty. [watchserver.Server.Recheck] calls Authorize again for each open watch. If Authorize
	// is nil, every user may make all requests.
	Authorize func(ctx context.Context, user watchserver.User, verb string, key listwatch.Key) error
	// Scope returns the part of Collection that exists for the user, such as the objects of the
	// user's tenant. Reads and writes obey it; see [store.Collection.Within]. An error is handled
	// as an error of Authorize. [watchserver.Server.Recheck] calls Scope again for each open watch.
	// If the scope has changed, the watch ends with status 410, so that the client lists again. If
	// nil, the scope of every user is the whole Collection.
	Scope func(ctx context.Context, user watchserver.User) (listwatch.Selection, error)
	// MaxBodyBytes limits the size of request bodies. If zero, [DefaultMaxBodyBytes] is used.
	// A negative value disables the limit. Larger bodies are refused with status 413.
	MaxBodyBytes int64

	defaults watchserver.Server // used if Server is nil
}

// DefaultMaxBodyBytes is the default of [Handler.MaxBodyBytes], 3 MiB as in Kubernetes.
const DefaultMaxBodyBytes = 3 << 20

// ServeHTTP serves the collection. Errors are sent as a Kubernetes Status.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = apihttp.WithResource(r, apihttp.DescribeResource(h.Collection, h.Collection.Spec().Plural))
	h.server().Gate(apihttp.HandlerFunc(h.serve)).ServeHTTP(w, r)
}

func (h *Handler) server() *watchserver.Server { return cmp.Or(h.Server, &h.defaults) }

// A call is a request that the gate has admitted.
type call struct {
	*Handler
	access.Call
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	key, err := h.parsePath(r.URL.EscapedPath())
	if err != nil {
		return err
	}
	verb, allowed := rest.VerbOf(r.Method, key.Name != "", a.Params.WantsWatch()), collectionVerbs
	if key.Name != "" {
		allowed = objectVerbs
	}
	if !slices.Contains(allowed, verb) {
		return apihttp.MethodNotAllowed(r, rest.Methods(allowed))
	}
	c := call{h, access.Call{Admitted: a, Verb: verb, Key: key, Collection: h.Collection, Started: time.Now()}}
	if err := c.Restrict(r.Context(), h.rights(verb, key)); err != nil {
		return err
	}
	if verb == "list" || verb == "watch" {
		c.Read(w, r, h.server(), watchserver.Endpoint{})
		return nil
	}
	if err := c.Begin(); err != nil {
		return err
	}
	switch verb {
	case "get":
		return c.get(w, r)
	case "create":
		return c.create(w, r)
	case "update", "patch":
		return c.update(w, r)
	}
	return c.delete(w, r)
}

// The verbs at the path of the collection, and at the path of an object.
var (
	collectionVerbs = []string{"list", "watch", "create"}
	objectVerbs     = []string{"get", "watch", "update", "patch", "delete"}
)

// rights returns the rights of users to a request, or nil if every user may do everything.
func (h *Handler) rights(verb string, key listwatch.Key) access.Rights {
	if h.Authorize == nil && h.Scope == nil {
		return nil
	}
	return func(ctx context.Context, user watchserver.User) (scope listwatch.Selection, err error) {
		if h.Authorize != nil {
			err = h.Authorize(ctx, user, verb, key)
		}
		if err == nil && h.Scope != nil {
			scope, err = h.Scope(ctx, user)
		}
		return scope, apihttp.Refusal(listwatch.Forbidden, err)
	}
}

// parsePath returns the namespace and the name in the escaped path of a request. The name is empty
// in the path of a collection, and the namespace is empty in the path of all namespaces.
func (h *Handler) parsePath(escaped string) (key listwatch.Key, err error) {
	noSuchPath := &listwatch.Error{
		Code: listwatch.NotFound, Message: "the server could not find the requested resource: " + escaped,
		Details: new(listwatch.Details),
	}
	tail, ok := strings.CutPrefix(escaped, h.root())
	if !ok || tail != "" && tail[0] != '/' {
		return key, noSuchPath
	}
	tail = strings.TrimSuffix(strings.TrimPrefix(tail, "/"), "/")
	if tail == "" {
		return key, nil
	}
	parts := strings.Split(tail, "/")
	for i, part := range parts {
		if parts[i], err = url.PathUnescape(part); err != nil || part == "" {
			return key, noSuchPath
		}
	}
	switch namespaced := h.Collection.Spec().Namespaced; {
	case namespaced && len(parts) == 1:
		return listwatch.Key{Namespace: parts[0]}, nil
	case namespaced && len(parts) == 2:
		return listwatch.Key{Namespace: parts[0], Name: parts[1]}, nil
	case !namespaced && len(parts) == 1:
		return listwatch.Key{Name: parts[0]}, nil
	}
	return key, noSuchPath
}

// root returns the escaped path of the collection, without a trailing slash.
func (h *Handler) root() string {
	return strings.TrimSuffix((&url.URL{Path: h.Path}).EscapedPath(), "/")
}

// pathOf returns the escaped path of an object.
func (h *Handler) pathOf(key listwatch.Key) string {
	path := h.root()
	if key.Namespace != "" {
		path += "/" + url.PathEscape(key.Namespace)
	}
	return path + "/" + url.PathEscape(key.Name)
}

func (c call) get(w http.ResponseWriter, r *http.Request) error {
	o, err := c.Call.Collection.Get(r.Context(), c.Key)
	if err != nil {
		return err
	}
	c.writeObject(w, r, http.StatusOK, o)
	return nil
}

// writeObject responds with o. Its ETag is its version, for If-Match.
func (c call) writeObject(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) {
	header := w.Header()
	apihttp.SetEpoch(header, c.Handler.Collection)
	if o.Version != 0 {
		header.Set("ETag", fmt.Sprintf(`"%d"`, o.Version))
	}
	c.Form.WriteObject(w, r, code, o)
}

// respond responds with o, the result of a write to the given collection, and reports the write.
func (c call) respond(w http.ResponseWriter, r *http.Request, code int, to *store.Collection, o *listwatch.Object) {
	c.writeObject(w, r, code, o)
	c.Wrote(r, to, o)
}
