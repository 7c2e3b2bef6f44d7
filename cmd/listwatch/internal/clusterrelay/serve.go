package clusterrelay

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/watchserver"
)

// serve answers a read from its cache.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	read := r.Context().Value(readKey{}).(*read)
	a.Resource = apihttp.Resource{Group: read.Group, Version: read.Version, Name: read.Plural}
	query, _ := a.Query() // parse has checked it
	a.Represent = h.metadata.Represent(query)
	if read.verb == "get" {
		return h.get(w, r, a, read)
	}
	h.server.Serve(w, r, watchserver.Endpoint{
		Source: read.cache, Namespace: read.Namespace, Name: read.Name, Watch: read.Watch,
		Recheck: func(ctx context.Context, _ watchserver.User) error { return h.recheckRead(ctx, read) },
	})
	return nil
}

// recheckRead returns an error if the client may no longer make the request of an open watch. As at
// the API server, an open watch continues while reviews fail: its client would list again if it ended
// now. But if the relay itself has no right to review, it must not show any more.
func (h *Handler) recheckRead(ctx context.Context, read *read) error {
	again := *read
	denial, err := h.review(ctx, &again)
	switch listwatch.CodeOf(err) {
	case listwatch.Forbidden, listwatch.Unauthorized, listwatch.NotFound:
		return reviewFailed(err)
	}
	return denial
}

// get responds with one object. If the cache has none, the API server responds.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, read *read) error {
	query, _ := a.Query() // parse has checked it
	text := query.Get("resourceVersion")
	version, err := listwatch.ParseVersion(text)
	if err != nil {
		h.proxy.ServeHTTP(w, r)
		return nil
	}
	if err := a.Begin(); err != nil {
		return err
	}
	form, err := a.ChooseBody(false)
	if err != nil {
		return err
	}
	q := listwatch.Query{Namespace: read.Namespace, Name: read.Name}
	switch {
	case version != 0:
		q.Start, q.Version = listwatch.StartAt, version
	case text != "":
		q.Start = listwatch.StartAny
	}
	page, err := read.cache.List(r.Context(), q)
	if err != nil {
		return err
	}
	if len(page.Items) != 1 {
		h.proxy.ServeHTTP(w, r)
		return nil
	}
	form.WriteObject(w, r, http.StatusOK, page.Items[0])
	return nil
}
