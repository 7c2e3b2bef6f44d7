package kubeapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// get answers one object, not older than the parameter resourceVersion says.
func (c call) get(w http.ResponseWriter, r *http.Request) error {
	version, err := listwatch.ParseVersion(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		return err
	}
	if version != 0 {
		// The list waits for the version; what is read after it is not older.
		q := listwatch.Query{Namespace: c.namespace, Name: c.name, Start: listwatch.At, Version: version}
		if _, err := c.collection.List(r.Context(), q); err != nil {
			return err
		}
	}
	o, err := c.collection.Get(r.Context(), c.key())
	if err == nil && c.subresource == "scale" {
		o, err = c.scale.of(o)
	}
	if err != nil {
		return err
	}
	return c.answer(w, r, http.StatusOK, o)
}

// answer writes o in the shape asked for, indented where the query wants it pretty.
func (c call) answer(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) error {
	body := o.Data
	if c.shape != nil {
		body = c.shape.AppendObject(nil, listwatch.Event{Type: listwatch.Added, Object: o, Version: o.Version})
	}
	if pretty(r.URL.Query()) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "  "); err != nil {
			return &listwatch.Error{Code: listwatch.Corrupt, Op: "get", Err: err}
		}
		body = indented.Bytes()
	}
	h := w.Header()
	if epoch := c.collection.Describe().Epoch; epoch != "" {
		h.Set(watchserver.EpochHeader, epoch)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	watchserver.WriteBody(w, r, code, body, []byte{'\n'}) // two parts: o.Data is shared and must not be appended to
	return nil
}

func pretty(q url.Values) bool {
	want, err := strconv.ParseBool(q.Get("pretty"))
	return err == nil && want
}
