package kubeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// get responds with one object that is at least as new as the parameter resourceVersion.
func (c resourceRequest) get(w http.ResponseWriter, r *http.Request) error {
	o, err := c.readCurrent(r)
	if err == nil && c.subresource == "scale" {
		o, err = c.scale.scaleOf(o)
	}
	if err != nil {
		return err
	}
	return c.writeObject(w, r, http.StatusOK, o)
}

// readCurrent returns the newest object. If the request has a resourceVersion, it returns
// an object that is not older, and for version 0 any available object.
func (c resourceRequest) readCurrent(r *http.Request) (*listwatch.Object, error) {
	text := r.URL.Query().Get("resourceVersion")
	version, err := listwatch.ParseVersion(text)
	if err != nil {
		return nil, err
	}
	if text != "" {
		q := listwatch.Query{Namespace: c.namespace, Name: c.name, Start: listwatch.Any}
		if version != 0 {
			q.Start, q.Version = listwatch.At, version // List waits for the version
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
func (c resourceRequest) writeObject(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) error {
	body := o.Data
	if c.representation != nil {
		body = c.representation.AppendObject(nil, listwatch.Event{Type: listwatch.Added, Object: o, Version: o.Version})
	}
	return c.writeJSON(w, r, code, body)
}

// writeList responds with a list of objects at version v in the requested representation.
func (c resourceRequest) writeList(w http.ResponseWriter, r *http.Request, v listwatch.Version, items []*listwatch.Object) error {
	metadata := table.AppendListMeta(nil, v)
	var body []byte
	if c.representation != nil {
		body = c.representation.AppendListHead(body, metadata)
	} else {
		body = fmt.Appendf(body, `{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[`, c.Kind, c.APIVersion(), metadata)
	}
	for i, o := range items {
		if i > 0 {
			body = append(body, ',')
		}
		if c.representation != nil {
			body = c.representation.AppendItem(body, o)
		} else {
			body = append(body, o.Data...)
		}
	}
	return c.writeJSON(w, r, http.StatusOK, append(body, "]}"...))
}

// writeJSON responds with a JSON body, which is indented if the query requests that. It
// does not modify body.
func (c resourceRequest) writeJSON(w http.ResponseWriter, r *http.Request, code int, body []byte) error {
	if pretty(r.URL.Query()) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "  "); err != nil {
			return &listwatch.Error{Code: listwatch.Corrupt, Op: "get", Err: err}
		}
		body = indented.Bytes()
	}
	h := w.Header()
	if epoch := c.collection.Describe().Epoch; epoch != "" {
		h.Set(transport.EpochHeader, epoch)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	// Pass the newline separately, because body may be shared and must not be modified.
	watchserver.WriteBody(w, r, code, body, []byte{'\n'})
	return nil
}

func pretty(q url.Values) bool {
	want, err := strconv.ParseBool(q.Get("pretty"))
	return err == nil && want
}
