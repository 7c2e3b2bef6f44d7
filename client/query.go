package client

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// queryParams are the parameters that come from a Query. If Remote.URL contains them, they
// are ignored.
var queryParams = []string{
	"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks",
	"initialEventsSince", "initialEventsState", "conflate", "limit", "continue", "pretty",
}

// params are the parameters of one request.
type params struct{ url.Values }

// paramsOf returns the parameters that all requests for q have: the parameters in the URL u, and
// the selection. The URL identifies one collection, so namespace and name become field selectors,
// which every server knows.
func paramsOf(u *url.URL, q listwatch.Query) params {
	p := params{u.Query()}
	for _, name := range queryParams {
		p.Del(name)
	}
	fields := q.Fields
	if q.Namespace != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldNamespace, q.Namespace))
	}
	if q.Name != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldName, q.Name))
	}
	p.addSelector("labelSelector", q.Labels.String())
	p.addSelector("fieldSelector", fields.String())
	if !q.Projection.Empty() {
		p.Set("fields", q.Projection.String())
	}
	return p
}

// projection returns the projection that the parameters request.
func (p params) projection() (listwatch.Projection, error) {
	return listwatch.ParseProjection(p.Get("fields"))
}

// missing returns the part of p that a server has not applied, if its response has the headers h:
// all or nothing. Servers that do not know projections ignore them.
func missing(p listwatch.Projection, h http.Header) listwatch.Projection {
	if h.Get(transport.FieldsHeader) == p.String() {
		return listwatch.Projection{}
	}
	return p
}

// addSelector appends selector to the selector of the URL. The comma between them means
// "and".
func (p params) addSelector(name, selector string) {
	if existing := p.Get(name); existing != "" && selector != "" {
		selector = existing + "," + selector
	}
	if selector != "" {
		p.Set(name, selector)
	}
}

// url returns u with the parameters p.
func (p params) url(u *url.URL) *url.URL {
	c := *u
	c.RawQuery = p.Encode()
	return &c
}

func (p params) start(q listwatch.Query) {
	switch q.Start {
	case listwatch.StartAny:
		p.Set("resourceVersion", "0")
	case listwatch.StartAt:
		p.Set("resourceVersion", q.Version.String())
	}
}

// list adds the parameters of a list.
func (p params) list(q listwatch.Query) {
	if q.Limit > 0 {
		p.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Continue != "" {
		p.Set("continue", q.Continue)
		return
	}
	p.start(q)
	if q.Start == listwatch.StartAt {
		match := "NotOlderThan"
		if q.Match == listwatch.MatchExact {
			match = "Exact"
		}
		p.Set("resourceVersionMatch", match)
	}
}

// watch adds the parameters of a watch. It always requests bookmarks, because they advance the
// version of a watch that receives no events. Such a watch can then resume even if the version of
// its last event has expired.
func (p params) watch(q listwatch.Query) {
	p.Set("watch", "true")
	p.Set("allowWatchBookmarks", "true")
	if q.Conflate != 0 {
		p.Set("conflate", listwatch.FormatConflation(q.Conflate))
	}
	if q.SendsInitialEvents() {
		p.watchInitial(q)
	} else {
		p.Set("resourceVersion", q.Version.String())
	}
}

// watchInitial adds the parameters of the initial events. It requests these events
// explicitly even if the server sends them by default, because otherwise the server does not mark
// the end of the initial events (KEP-3157).
func (p params) watchInitial(q listwatch.Query) {
	p.Set("sendInitialEvents", "true")
	p.Set("resourceVersionMatch", "NotOlderThan")
	p.start(q)
	if since := q.Since; since.Version != 0 {
		p.Set("initialEventsSince", since.Version.String())
		p.Set("initialEventsState", since.ID)
	}
}

// checkQuery returns an error if q cannot be expressed as a request.
func checkQuery(q listwatch.Query, watch bool) error {
	message := ""
	switch {
	case q.Start == listwatch.StartAt && q.Version == 0:
		message = "Query.Version is zero: StartAt needs a version"
	case watch && q.Continue != "":
		message = "Query.Continue is set: only a list can be continued"
	case q.Continue != "" && (q.Start != listwatch.StartNewest || q.Version != 0 || q.Match != 0):
		message = "Query.Start, Version and Match must be zero with a continue token"
	}
	if message == "" {
		return nil
	}
	return &listwatch.Error{Code: listwatch.Invalid, Op: opOf(watch), Message: message}
}

func opOf(watch bool) string {
	if watch {
		return "watch"
	}
	return "list"
}

// kubernetesPath matches the path of a collection in a Kubernetes API. The groups of the expression
// match the namespace, which may be empty, and the plural.
var kubernetesPath = func() *regexp.Regexp {
	const version = `v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?`
	return regexp.MustCompile(`(?:^|/)(?:api|apis/[^/]+)/` + version + `/(?:namespaces/([^/]+)/)?([^/]+)/?$`)
}()

// namespaceURL returns the URL of the objects of one namespace, or nil if the path of u is not that
// of all objects of a collection in a Kubernetes API. A user may have rights to one namespace only,
// and a kube-apiserver does not select each kind by its namespace. At this URL it also counts the
// remaining items of a page, which it does not do for a list with selectors, and its continue
// tokens are valid for other clients of the namespace.
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

// objectURL returns the URL for the request q: the URL of the object or, for a create, the URL to
// which the object is posted. u is the URL of the collection, and plain is [Remote.PlainPaths].
func objectURL(u *url.URL, q objectRequest, plain bool) (*url.URL, error) {
	name := q.key.Name
	switch isCreate := q.method == http.MethodPost; {
	case isCreate:
		name = ""
	case name == "":
		return nil, invalidKey(q.key, "the name is empty, so it addresses the whole collection")
	}
	for _, segment := range []string{q.key.Namespace, name, q.subresource} {
		if segment == "." || segment == ".." || strings.ContainsAny(segment, "/%") {
			return nil, invalidKey(q.key, "namespace and name must not be . or .., nor contain / or %")
		}
	}
	p := paramsOf(u, listwatch.Query{})
	for _, selection := range []string{"labelSelector", "fieldSelector", "fields", "timeoutSeconds"} {
		p.Del(selection)
	}
	for name, values := range q.query {
		p.Values[name] = values
	}
	if u = p.url(u); u.Path == "" {
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
