package kubeapi

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// get responds with one object, which is at least as new as the resourceVersion in the query.
func (c call) get(w http.ResponseWriter, r *http.Request) error {
	o, err := c.readCurrent(r)
	if err == nil && c.Subresource == "scale" {
		o, err = c.scale.scaleOf(o)
	}
	if err != nil {
		return err
	}
	c.writeObject(w, r, http.StatusOK, o)
	return nil
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
		q := listwatch.Query{
			Selection: listwatch.Selection{Namespace: c.Namespace, Name: c.Name}, Start: listwatch.StartAny,
		}
		if version != 0 {
			q.Start, q.Version = listwatch.StartAt, version // List waits for the version
		}
		page, err := c.Collection.List(r.Context(), q)
		if err != nil {
			return nil, err
		}
		if len(page.Items) == 1 {
			return page.Items[0], nil
		}
	}
	return c.Collection.Get(r.Context(), c.Key)
}

// writeObject responds with o in the requested representation.
func (c call) writeObject(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) {
	apihttp.SetEpoch(w.Header(), c.Collection)
	all, form := c.encode([]*listwatch.Object{o})
	form.WriteObject(w, r, code, all[0])
}

// writeList responds with a page of objects in the requested representation.
func (c call) writeList(w http.ResponseWriter, r *http.Request, page listwatch.Page) error {
	apihttp.SetEpoch(w.Header(), c.Collection)
	all, form := c.encode(page.Items)
	page.Items = all
	_, err := apihttp.WriteList(w, r, apihttp.ListBody{Description: c.Collection.Describe(), Page: page, Form: form})
	return err
}

// encode returns objects in the encoding of the response, and the form of the response. That is
// JSON if Kubernetes' Go packages cannot decode an object, which a write may have stored already.
// Clients decode what the header says.
func (c call) encode(objects []*listwatch.Object) ([]*listwatch.Object, apihttp.BodyForm) {
	if c.Form.Encoding == nil {
		return objects, c.Form
	}
	encoded, err := c.protobuf.get().Objects(objects)
	if err != nil {
		return objects, apihttp.BodyForm{MediaType: "application/json"}
	}
	return encoded, c.Form
}
