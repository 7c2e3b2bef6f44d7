package client

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/transport"
)

// parametersOf returns the parameters of a list or a watch of r with q at u, and its projection.
// The parameters of u remain, unless they come from a Query.
func parametersOf(
	r *Remote, u *url.URL, q listwatch.Query, watch bool,
) (p url.Values, projection listwatch.Projection, err error) {
	p = u.Query()
	p.Del("pretty")
	rest.Set(p, q, watch)
	if projection, err = listwatch.ParseProjection(p.Get("fields")); err == nil && !projection.Empty() {
		err = listwatch.Describe(r).RequireJSON("the parameter fields")
	}
	return p, projection, err
}

// withParameters returns u with the parameters p.
func withParameters(u *url.URL, p url.Values) *url.URL {
	c := *u
	c.RawQuery = p.Encode()
	return &c
}

// missing returns the part of p that the server has not applied: all of p or nothing. h holds the
// headers of the response. Servers that do not know projections ignore them.
func missing(p listwatch.Projection, h http.Header) listwatch.Projection {
	if h.Get(transport.FieldsHeader) == p.String() {
		return listwatch.Projection{}
	}
	return p
}

// checkQuery returns an error if q cannot be expressed as a request. op is "list" or "watch".
func checkQuery(op string, q listwatch.Query) error {
	message := ""
	switch {
	case q.Start == listwatch.StartAt && q.Version == 0:
		message = "Query.Version is zero: StartAt needs a version"
	case op == "watch" && q.Continue != "":
		message = "Query.Continue is set: only a list can be continued"
	case q.Continue != "" && (q.Start != listwatch.StartNewest || q.Version != 0 || q.Match != 0):
		message = "Query.Start, Version and Match must be zero with a continue token"
	}
	if message == "" {
		return nil
	}
	return &listwatch.Error{Code: listwatch.Invalid, Op: op, Message: message}
}

// kubernetesPath matches the path of a collection in a Kubernetes API. The groups of the expression
// match the namespace, which may be empty, and the plural.
var kubernetesPath = func() *regexp.Regexp {
	const version = `v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?`
	return regexp.MustCompile(`(?:^|/)(?:api|apis/[^/]+)/` + version + `/(?:namespaces/([^/]+)/)?([^/]+)/?$`)
}()

// namespaceURL returns the URL of the objects of one namespace. It returns nil if the path of u is
// not the path of all objects of a collection in a Kubernetes API. The URL of the namespace has
// several advantages: a user may have rights to one namespace only, and a kube-apiserver cannot
// select every kind by namespace. At this URL the server also counts the remaining items of a page,
// which it does not do for a list with selectors, and its continue tokens are valid for other
// clients of the namespace.
func namespaceURL(u *url.URL, namespace string) *url.URL {
	path := kubernetesPath.FindStringSubmatch(u.Path)
	if path == nil || path[1] != "" || !isSegment(namespace) {
		return nil
	}
	return u.JoinPath("..", "namespaces", namespace, path[2])
}

// isSegment reports whether s can be a segment of a path.
func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/%")
}

// objectURL returns the URL of the request q for an object. For a create, it is the URL to which
// the object is posted. u is the URL of the collection, and plain is [Remote.PlainPaths].
func objectURL(u *url.URL, q objectRequest, plain bool) (*url.URL, error) {
	name := q.key.Name
	switch isCreate := q.method == http.MethodPost; {
	case isCreate:
		name = ""
	case name == "":
		return nil, invalidKey(q.key, "the name is empty, so it addresses the whole collection")
	}
	for _, segment := range []string{q.key.Namespace, name, q.subresource} {
		if segment != "" && !isSegment(segment) {
			return nil, invalidKey(q.key, "namespace and name must not be . or .., nor contain / or %")
		}
	}
	p := u.Query()
	for _, name := range append(rest.Names(rest.Selects, rest.Reads), "timeoutSeconds", "pretty") {
		p.Del(name)
	}
	maps.Copy(p, q.query)
	if u = withParameters(u, p); u.Path == "" {
		u.Path = "/"
	}
	if path := kubernetesPath.FindStringSubmatch(u.Path); path == nil || plain {
		u = joinPath(u, q.key.Namespace)
	} else if namespace, plural := path[1], path[2]; namespace == "" && q.key.Namespace != "" {
		u = u.JoinPath("..", "namespaces", q.key.Namespace, plural)
	} else if q.key.Namespace != "" && q.key.Namespace != namespace {
		return nil, invalidKey(q.key, "Remote.URL is limited to the namespace "+namespace)
	}
	return joinPath(joinPath(u, name), q.subresource), nil
}

// joinPath appends a segment to the path of u, unless it is empty.
func joinPath(u *url.URL, segment string) *url.URL {
	if segment == "" {
		return u
	}
	return u.JoinPath(segment)
}

func invalidKey(key listwatch.Key, why string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("key %q: %s", key, why)}
}
