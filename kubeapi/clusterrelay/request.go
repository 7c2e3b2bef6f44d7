package clusterrelay

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi"
)

// A request is a list, get or watch that a cache may be able to answer.
type request struct {
	kubeapi.Route
	verb           string
	labels, fields string // the selectors, as sent
	token          string // the continue token; empty if there is none
	selected       listwatch.FieldSelector
	// isPlain is true if q lists the newest state from its start, and the API server knows all of
	// its parameters.
	isPlain bool
}

// parameters are the parameters of a query that a cache understands. Kubernetes may add others that
// change the response, so the API server answers requests with any other parameter.
var parameters = []string{
	"allowWatchBookmarks", "conflate", "continue", "fieldSelector", "fields", "initialEventsSince",
	"initialEventsState", "labelSelector", "limit", "pretty", "resourceVersion", "resourceVersionMatch",
	"sendInitialEvents", "timeout", "timeoutSeconds", "watch",
}

// parse returns the list, get or watch that r requests. It returns false if only the API server can
// answer r.
func parse(r *http.Request) (q request, ok bool) {
	if r.Method != http.MethodGet || impersonates(r) {
		return q, false
	}
	if q.Route, ok = kubeapi.ParseRoute(r.URL.EscapedPath()); !ok || q.Subresource != "" {
		return q, false
	}
	parsed := apihttp.Parse(r)
	query, err := parsed.Query()
	if err != nil {
		return q, false
	}
	for name, values := range query {
		if len(values) > 1 || !slices.Contains(parameters, name) {
			return q, false
		}
	}
	q.verb = verbOf(r, q.Route)
	q.token = query.Get("continue")
	if q.token != "" && !isOwnToken(q.token) || !accepts(r, q.verb == "watch") {
		return q, false
	}
	// The API server reads one object faster than the relay learns its newest version.
	if q.verb == "get" && query.Get("resourceVersion") == "" {
		return q, false
	}
	q.isPlain = q.verb == "list" && query.Get("resourceVersion") == "" && q.token == "" &&
		query.Get("fields") == ""
	q.labels, q.fields = query.Get("labelSelector"), query.Get("fieldSelector")
	q.selected, err = parsed.Fields()
	return q, err == nil
}

// verbOf returns Kubernetes' verb for a GET, and otherwise the method in lower case.
func verbOf(r *http.Request, route kubeapi.Route) string {
	switch {
	case r.Method != http.MethodGet:
		return strings.ToLower(r.Method)
	case route.Watch || route.Name == "" && apihttp.Parse(r).WantsWatch():
		return "watch"
	case route.Name != "":
		return "get"
	}
	return "list"
}

// impersonates reports whether r requests to be served as another user, which only the API server
// can permit.
func impersonates(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

var streams, bodies = framing.Default(), jsonOnly()

func jsonOnly() *framing.Registry {
	r, err := framing.NewRegistry(framing.JSON{})
	if err != nil {
		panic("clusterrelay: " + err.Error())
	}
	return r
}

// accepts reports whether r accepts a response that a cache can send. The API server answers all
// requests for tables, because only it knows the columns of every resource.
func accepts(r *http.Request, watch bool) bool {
	accept, err := apihttp.AcceptOf(r)
	if err != nil {
		return false
	}
	known := make([]framing.MediaRange, 0, len(accept))
	for _, m := range accept {
		switch m.Params["as"] {
		case "Table":
			return false
		case "PartialObjectMetadata", "PartialObjectMetadataList":
			m.Params = nil
		}
		known = append(known, m)
	}
	forms := bodies
	if watch {
		forms = streams
	}
	_, err = forms.Negotiate(known, false)
	return err == nil
}

// nameFor returns the name that the client must have a right to: the name in the path or, as in
// Kubernetes, the name that the field selector requires.
func (r *request) nameFor() string {
	if r.Name != "" {
		return r.Name
	}
	name, _ := r.selected.Equality(listwatch.FieldName)
	return name
}

// selects reports whether a cache of the resource can evaluate the field selector. The API server
// answers if the selector uses the namespace of objects without namespaces, because it refuses that
// for some kinds.
func (r *request) selects(of kubeapi.Resource) bool {
	for _, path := range r.selected.Paths() {
		known := path == listwatch.FieldName || path == listwatch.FieldNamespace && of.Namespaced
		if !known && !slices.Contains(of.Fields, path) {
			return false
		}
	}
	return true
}
