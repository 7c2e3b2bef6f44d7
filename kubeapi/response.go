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
	c.setEpoch(w)
	c.form.WriteObject(w, r, code, o)
	return nil
}

// writeList responds with a page of objects in the requested representation.
func (c call) writeList(w http.ResponseWriter, r *http.Request, page listwatch.Page) error {
	c.setEpoch(w)
	_, err := apihttp.WriteList(w, r, apihttp.ListBody{Description: c.collection.Describe(), Page: page, Form: c.form})
	return err
}

func (c call) setEpoch(w http.ResponseWriter) {
	if epoch := c.collection.Describe().Epoch; epoch != "" {
		w.Header().Set(transport.EpochHeader, epoch)
	}
}
