package crudserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A Handler is an [http.Handler] that serves one collection. Do not change its fields after the
// first request, and do not copy it.
//
// The gate of Server admits each request, and identifies its user. Any user may read and write. To
// restrict that, wrap the Handler in a handler that refuses requests. All methods except GET, HEAD
// and OPTIONS are writes.
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

func (h *Handler) server() *watchserver.Server {
	if h.Server != nil {
		return h.Server
	}
	return &h.defaults
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	key, err := h.parsePath(r.URL.EscapedPath())
	if err != nil {
		return err
	}
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if isRead && (key.Name == "" || a.WantsWatch()) {
		h.server().Serve(w, r, watchserver.Endpoint{Source: h.Collection, Namespace: key.Namespace, Name: key.Name})
		return nil
	}
	if err := a.Begin(); err != nil {
		return err
	}
	switch {
	case isRead:
		return h.get(w, r, key)
	case r.Method == http.MethodPost && key.Name == "":
		return h.create(w, r, a, key.Namespace)
	case r.Method == http.MethodPut && key.Name != "":
		return h.update(w, r, a, key)
	case r.Method == http.MethodDelete && key.Name != "":
		return h.delete(w, r, a, key)
	case key.Name == "":
		return apihttp.MethodNotAllowed(r, "GET, HEAD, POST")
	}
	return apihttp.MethodNotAllowed(r, "GET, HEAD, PUT, DELETE")
}

// parsePath returns the namespace and the name in the escaped path of a request. The name is empty
// in the path of a collection, and the namespace is empty in the path of all namespaces.
func (h *Handler) parsePath(escaped string) (key listwatch.Key, err error) {
	noSuchPath := &listwatch.Error{
		Code: listwatch.NotFound, Message: "the server could not find the requested resource: " + escaped,
		Details: new(listwatch.Details),
	}
	rest, ok := strings.CutPrefix(escaped, h.root())
	if !ok || rest != "" && rest[0] != '/' {
		return key, noSuchPath
	}
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/")
	if rest == "" {
		return key, nil
	}
	parts := strings.Split(rest, "/")
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

func (h *Handler) get(w http.ResponseWriter, r *http.Request, key listwatch.Key) error {
	if _, err := apihttp.BodyType(r); err != nil {
		return err
	}
	o, err := h.Collection.Get(r.Context(), key)
	if err != nil {
		return err
	}
	h.writeObject(w, r, http.StatusOK, o)
	return nil
}

// writeObject responds with o. Its ETag is its version, for If-Match.
func (h *Handler) writeObject(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) {
	header := w.Header()
	if epoch := h.Collection.Describe().Epoch; epoch != "" {
		header.Set(transport.EpochHeader, epoch)
	}
	if o.Version != 0 {
		header.Set("ETag", fmt.Sprintf(`"%d"`, o.Version))
	}
	// The error is nil, because get and readWrite have checked it.
	mediaType, _ := apihttp.BodyType(r)
	header.Set("Content-Type", mediaType)
	header.Add("Vary", "Accept")
	header.Set("Cache-Control", "no-cache, private")
	header.Set("X-Content-Type-Options", "nosniff")
	// Pass the newline separately, because the data is shared and must not be modified.
	apihttp.WriteBody(w, r, code, o.Data, []byte{'\n'})
}
