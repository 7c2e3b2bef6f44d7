package reference

import (
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

const (
	secondPath = "/seconds"
	unionPath  = "/watch"
)

// parts returns the parts of the union of both collections.
func (r *referenceServer) parts() []listwatch.Part {
	return []listwatch.Part{{Source: r.things.objects}, {Source: r.things.second}}
}

// serveUnions makes mux serve the second collection and unions. If a mutant wraps unions, each
// union consists of both collections, whatever the request names.
func (r *referenceServer) serveUnions(mux *http.ServeMux, api *api) {
	if r.things.second == nil {
		return
	}
	mux.HandleFunc(secondPath, func(w http.ResponseWriter, request *http.Request) {
		api.server.Serve(w, request, watchserver.Endpoint{Source: r.things.second})
	})
	mux.Handle(unionPath, api.server.Union(mux))
	if r.wrap.Union == nil {
		return
	}
	union, err := r.things.second.Union(r.parts()...)
	if err != nil {
		r.Fatal(err)
	}
	wrapped := r.wrap.Union(union)
	mux.HandleFunc("GET "+unionPath, func(w http.ResponseWriter, request *http.Request) {
		api.server.Serve(w, request, watchserver.Endpoint{Source: wrapped})
	})
}

// union describes the unions of the server at the URL at. It returns nil if there are none.
func (r *referenceServer) union(at *url.URL) *harness.Union {
	if r.things.second == nil {
		return nil
	}
	if _, err := r.things.second.Union(r.parts()...); err != nil {
		return nil
	}
	u := *at
	u.Path = unionPath
	return &harness.Union{URL: &u, Parts: [2]string{at.Path, secondPath}, Second: storeOf{r.things.second}}
}
