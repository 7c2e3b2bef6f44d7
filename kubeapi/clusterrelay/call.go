package clusterrelay

import (
	"context"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/kubeapi"
)

// A call is a request of a client, with what the relay knows about it.
type call struct {
	kubeapi.Route  // zero if the path is not the path of a resource
	admitted       *apihttp.Admitted
	verb           string // Kubernetes' verb; empty if the Route is zero
	sender         sender
	token          string // the continue token; empty if there is none
	labels, fields string // the selectors, as sent
	selected       listwatch.FieldSelector
	// isPlain is true if a list requests the newest state from its start, and the API server knows
	// all of its parameters.
	isPlain bool

	// These are set if a cache answers the request.
	resource kubeapi.Resource
	form     // of the response; see choose
	user     user
	cache    *cache
}

// id returns the ID of the cache that c chooses.
func (c *call) id() cacheID { return cacheID{idOf(c.resource), c.encoding} }

func newCall(r *http.Request, a *apihttp.Admitted) *call {
	c := &call{admitted: a}
	var ok bool
	if c.Route, ok = kubeapi.ParseRoute(r.URL.EscapedPath()); ok {
		watch := c.Watch || c.Name == "" && a.Params.WantsWatch()
		c.verb = rest.VerbOf(r.Method, c.Name != "", watch)
	}
	return c
}

// callKey is the key of the context of a request. The value is its *call.
type callKey struct{}

// callIn returns the call of ctx, which is derived from the context of its request.
func callIn(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// parseRead reads the selection of c, a list, get or watch. It returns false if only the API server
// can answer c.
func (c *call) parseRead(r *http.Request) bool {
	if r.Method != http.MethodGet || c.verb == "" || c.Subresource != "" || apihttp.Impersonation(r) != "" {
		return false
	}
	query, err := c.admitted.Query()
	if err != nil {
		return false
	}
	for name, values := range query {
		if len(values) > 1 || rest.RoleOf(name) == 0 {
			return false // Kubernetes may add parameters that change the response
		}
	}
	c.token = query.Get("continue")
	if c.token != "" && !isOwnToken(c.token) {
		return false
	}
	isNewest := query.Get("resourceVersion") == ""
	c.isPlain = c.verb == "list" && isNewest && c.token == "" && query.Get("fields") == ""
	c.labels, c.fields = query.Get("labelSelector"), query.Get("fieldSelector")
	c.selected, err = c.admitted.Params.Fields()
	// The API server reads one object faster than the relay learns its newest version.
	return err == nil && !(c.verb == "get" && isNewest)
}

// nameFor returns the name that the client must have a right to: the name in the path or, as in
// Kubernetes, the name that the field selector requires.
func (c *call) nameFor() string {
	if c.Name != "" {
		return c.Name
	}
	name, _ := c.selected.Equality(listwatch.FieldName)
	return name
}

// selects reports whether a cache of the resource can evaluate the field selector. The API server
// answers if the selector uses the namespace of objects without namespaces, because it refuses that
// for some kinds.
func (c *call) selects(of kubeapi.Resource) bool {
	for _, path := range c.selected.Paths() {
		known := path == listwatch.FieldName || path == listwatch.FieldNamespace && of.Namespaced
		if !known && !slices.Contains(of.Fields, path) {
			return false
		}
	}
	return true
}

// continuesDropped reports whether c continues a list of a cache with a token that the API server
// cannot read.
func (c *call) continuesDropped(method string) bool {
	query, _ := c.admitted.Query() // the part that can be parsed
	token := query.Get("continue")
	_, isReadable := parseContinueToken(token)
	return method == http.MethodGet && token != "" && isOwnToken(token) && !isReadable
}

// connections are the subresources whose requests write no resource, and may last for hours.
var connections = []string{"attach", "exec", "portforward", "proxy"}

// writes reports whether c may write a resource.
func (c *call) writes() bool {
	return c.verb != "" && !rest.IsRead(c.verb) && !slices.Contains(connections, c.Subresource)
}
