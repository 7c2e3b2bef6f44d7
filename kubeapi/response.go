package kubeapi

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/transport"
)

// get responds with one object, which is at least as new as the resourceVersion in the query.
func (c call) get(w http.ResponseWriter, r *http.Request) error {
	o, err := c.readCurrent(r)
	if err == nil && c.subresource == "scale" {
		o, err = c.scale.scaleOf(o)
	}
	if err != nil {
		return err
	}
	return c.writeObject(w, r, http.StatusOK, o)
}

// readCurrent returns the newest state of the object. If the request has a resourceVersion, it may
// return an older state, but not one older than that version. For version 0, it may return any
// available state.
func (c call) readCurrent(r *http.Request) (*listwatch.Object, error) {
	text := apihttp.QueryOf(r).Get("resourceVersion")
	version, err := listwatch.ParseVersion(text)
	if err != nil {
		return nil, err
	}
	if text != "" {
		q := listwatch.Query{Namespace: c.namespace, Name: c.name, Start: listwatch.StartAny}
		if version != 0 {
			q.Start, q.Version = listwatch.StartAt, version // List waits for the version
		}
		page, err := c.collection.List(r.Context(), q)
		if err != nil {
			return nil, err
		}
		if len(page.Items) == 1 {
			return page.Items[0], nil
		}
	}
	return c.collection.Get(r.Context(), c.key())
}

// writeObject responds with o in the requested representation.
func (c call) writeObject(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) error {
	body := o.Data
	if c.representation != nil {
		body = c.representation.AppendObject(nil, listwatch.Event{Type: listwatch.Added, Object: o, Version: o.Version})
	}
	c.setHeaders(w)
	// Pass the newline separately, because the data is shared and must not be modified.
	apihttp.WriteBody(w, r, code, body, []byte{'\n'})
	return nil
}

// writeList responds with a page of objects in the requested representation.
func (c call) writeList(w http.ResponseWriter, r *http.Request, page listwatch.Page) error {
	c.setHeaders(w)
	_, err := apihttp.WriteList(w, r, apihttp.ListBody{
		Description: c.collection.Describe(), Page: page, Representation: c.representation,
	})
	return err
}

func (c call) setHeaders(w http.ResponseWriter) {
	h := w.Header()
	if epoch := c.collection.Describe().Epoch; epoch != "" {
		h.Set(transport.EpochHeader, epoch)
	}
	h.Set("Content-Type", c.mediaType)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
}
