package kubeapi

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/access"
	"github.com/listwatch/listwatch/internal/rest"
)

// A call is a request whose path names a served resource.
type call struct {
	*servedResource
	Route
	access.Call
	bodyBytes int               // the size of the request body; 0 until it was read
	isApply   bool              // the request is a server-side apply
	tracksAll bool              // see Handler.ManagedFields
	warn      func(text string) // adds a warning to the response
}

// verbOf returns Kubernetes' verb for the request, or "" if the path does not allow the method.
func (c call) verbOf(r *http.Request) string {
	if c.Watch && c.Subresource == "" {
		return "watch" // the watch server rejects other methods
	}
	// As in Kubernetes, the query parameter watch has an effect only on a list.
	verb := rest.VerbOf(r.Method, c.Name != "", c.Name == "" && c.Admitted.Params.WantsWatch())
	if !slices.Contains(c.allowedVerbs(), verb) {
		return ""
	}
	return verb
}

// The verbs at the path of an object, and at the path of a collection in which objects can be
// created.
var (
	objectVerbs     = []string{"get", "update", "patch", "delete"}
	collectionVerbs = []string{"list", "watch", "create", "deletecollection"}
)

// allowedVerbs returns the verbs at the path of c.
func (c call) allowedVerbs() []string {
	switch {
	case c.Subresource != "":
		return c.subresourceVerbs()
	case c.ReadOnly:
		return readVerbs
	case c.Name != "":
		return objectVerbs
	case c.isCollection():
		return collectionVerbs
	}
	return readVerbs
}

// isCollection reports whether the path names a collection in which objects can be created. If the
// resource is namespaced, the path must contain the namespace.
func (c call) isCollection() bool {
	return c.Name == "" && (c.Namespace != "" || !c.Namespaced)
}

// scopeMismatch reports whether the path has a namespace although the resource is
// cluster-scoped, or lacks a required namespace.
func (s *servedResource) scopeMismatch(t Route) bool {
	if !s.Namespaced {
		return t.Namespace != ""
	}
	return t.Namespace == "" && t.Name != ""
}

func noSuchSubresource(r *http.Request, s Resource, t Route) error {
	err := listwatch.AsError(noSuchPath(r))
	err.Details = &listwatch.Details{Name: t.Name, Group: s.Group, Kind: s.Plural}
	if s.Custom {
		err.Message = fmt.Sprintf("%s %q not found", s.QualifiedName(), t.Name)
	}
	return err
}

func noSuchPath(r *http.Request) error {
	return &listwatch.Error{
		Code:    listwatch.NotFound,
		Message: "the server could not find the requested resource: " + r.URL.Path,
		Details: &listwatch.Details{},
	}
}
