package clusterrelay

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/watchserver"
)

// readKey is the key of the context of a request whose value is its *read.
type readKey struct{}

// A cacheServer answers reads from caches.
type cacheServer struct {
	server   *watchserver.Server
	reviewer *reviewer
	metadata *table.Table // represents objects by their metadata
	proxy    http.Handler // answers for objects that the cache does not have
}

// serve answers a read from its cache.
func (s *cacheServer) serve(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	read := r.Context().Value(readKey{}).(*read)
	a.Resource = apihttp.Resource{Group: read.Group, Version: read.Version, Name: read.Plural}
	query, _ := a.Query() // parse has checked it
	a.Represent = s.metadata.Represent(query)
	if read.verb == "get" {
		return s.get(w, r, a, read)
	}
	s.server.Serve(w, r, watchserver.Endpoint{
		Source: read.cache, Namespace: read.Namespace, Name: read.Name, Watch: read.Watch,
		Recheck: func(ctx context.Context, _ watchserver.User) error { return s.recheckRead(ctx, read) },
	})
	return nil
}

// recheckRead returns an error if the client may no longer make the request of an open watch. As at
// the API server, an open watch continues while reviews fail: its client would list again if it
// ended now. But if the relay itself has no right to review, it must not show any more.
func (s *cacheServer) recheckRead(ctx context.Context, read *read) error {
	again := *read
	denial, err := s.reviewer.check(ctx, &again)
	switch listwatch.CodeOf(err) {
	case listwatch.Forbidden, listwatch.Unauthorized, listwatch.NotFound:
		return reviewFailed(err)
	}
	return denial
}

// get responds with one object. If the cache has none, the API server responds.
func (s *cacheServer) get(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, read *read) error {
	query, _ := a.Query() // parse has checked it
	version, err := listwatch.ParseVersion(query.Get("resourceVersion"))
	if err != nil {
		s.proxy.ServeHTTP(w, r)
		return nil
	}
	if err := a.Begin(); err != nil {
		return err
	}
	form, err := a.ChooseBody(false)
	if err != nil {
		return err
	}
	q := listwatch.Query{
		Selection: listwatch.Selection{Namespace: read.Namespace, Name: read.Name}, Start: listwatch.StartAny,
	}
	if version != 0 {
		q.Start, q.Version = listwatch.StartAt, version
	}
	page, err := read.cache.List(r.Context(), q)
	if err != nil {
		return err
	}
	if len(page.Items) != 1 {
		s.proxy.ServeHTTP(w, r)
		return nil
	}
	form.WriteObject(w, r, http.StatusOK, page.Items[0])
	return nil
}
