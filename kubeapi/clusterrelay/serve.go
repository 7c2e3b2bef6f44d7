package clusterrelay

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/watchserver"
)

// A cacheServer answers reads from caches.
type cacheServer struct {
	server   *watchserver.Server
	reviewer *reviewer
	metadata *table.Table // represents objects by their metadata
	proxy    *proxy       // answers for objects that the cache does not have
}

// serve answers a read from its cache.
func (s *cacheServer) serve(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	c := callIn(r.Context())
	a.Resource = apihttp.Resource{Group: c.Group, Version: c.Version, Name: c.Plural}
	query, _ := a.Query() // parseRead has checked it
	a.Represent = represent(s.metadata, c.encoding, query)
	c.cache.warn(w.Header())
	if c.verb == "get" {
		return s.get(w, r, a, c)
	}
	s.server.Serve(w, r, watchserver.Endpoint{
		Source: c.cache, Selection: listwatch.Selection{Namespace: c.Namespace, Name: c.Name}, Watch: c.Watch,
		SharedCompression: watchserver.ShareInitial,
		Recheck:           func(ctx context.Context, _ watchserver.User) error { return s.recheckRead(ctx, c) },
	})
	return nil
}

// recheckRead returns an error if the client may no longer make the request of an open watch. As at
// the API server, an open watch continues while reviews fail: its client would list again if it
// ended now. But it ends if the API server does not let the relay review requests.
func (s *cacheServer) recheckRead(ctx context.Context, c *call) error {
	again := *c
	denial, err := s.reviewer.check(ctx, &again)
	switch listwatch.CodeOf(err) {
	case listwatch.Forbidden, listwatch.Unauthorized, listwatch.NotFound:
		return reviewFailed(err)
	}
	return denial
}

// get responds with one object. If the cache has none, the API server responds.
func (s *cacheServer) get(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, c *call) error {
	query, _ := a.Query() // parseRead has checked it
	version, err := listwatch.ParseVersion(query.Get("resourceVersion"))
	if err != nil {
		return s.proxy.pass(w, r)
	}
	if err := a.Begin(); err != nil {
		return err
	}
	form, err := a.ChooseBody(false, listwatch.Describe(c.cache))
	if err != nil {
		return err
	}
	one := listwatch.Selection{Namespace: c.Namespace, Name: c.Name}
	list := listwatch.Query{Selection: one, Start: listwatch.StartAny}
	if version != 0 {
		list.Start, list.Version = listwatch.StartAt, version
	}
	page, err := c.cache.List(r.Context(), list)
	if err != nil {
		return err
	}
	if len(page.Items) != 1 {
		return s.proxy.pass(w, r)
	}
	form.WriteObject(w, r, http.StatusOK, page.Items[0])
	return nil
}
