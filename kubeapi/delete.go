package kubeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// deleteOptions are what of metav1.DeleteOptions means something here. Grace periods and propagation policies are accepted: nothing
// depends on an object.
type deleteOptions struct {
	Kind          string
	DryRun        []string
	Preconditions struct{ UID, ResourceVersion string }
}

// readDelete reads the body of a delete, which may be empty, and returns what it is about.
func (h *Handler) readDelete(w http.ResponseWriter, r *http.Request, c call) (*store.Collection, store.Preconditions, error) {
	var p store.Preconditions
	from, err := c.target(r)
	if err != nil {
		return nil, p, err
	}
	data, err := h.readObject(w, r)
	if err != nil || len(data) == 0 {
		return from, p, err
	}
	var o deleteOptions
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, p, &listwatch.Error{Code: listwatch.Invalid, Message: "the body of a delete must be DeleteOptions, in JSON", Err: err}
	}
	if o.Kind != "" && o.Kind != "DeleteOptions" {
		return nil, p, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("the body of a delete must be DeleteOptions, got kind %q", o.Kind)}
	}
	p.UID = o.Preconditions.UID
	if p.Version, err = listwatch.ParseVersion(o.Preconditions.ResourceVersion); err != nil {
		return nil, p, err
	}
	from, err = c.dryIf(from, o.DryRun)
	return from, p, err
}

// delete answers a DELETE of an object: with a Status where it is gone, with the object where finalizers hold it.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, c call) error {
	from, conditions, err := h.readDelete(w, r, c)
	if err != nil {
		return err
	}
	o, err := from.Delete(r.Context(), c.key(), conditions)
	if err != nil {
		return err
	}
	if rawjson.Lookup(o.Data, "metadata", "deletionTimestamp") != nil {
		return c.answer(w, r, http.StatusOK, o)
	}
	writeSuccess(w, r, listwatch.StatusDetails{Name: o.Key.Name, Group: c.Group, Kind: c.Plural, UID: metaText(o.Data, "uid")})
	return nil
}

// deleteCollection answers a DELETE of all objects that the selectors of the query select. It is no transaction: what is created
// meanwhile may stay, and where it fails, some may be gone.
func (h *Handler) deleteCollection(w http.ResponseWriter, r *http.Request, c call) error {
	from, conditions, err := h.readDelete(w, r, c)
	if err != nil {
		return err
	}
	if conditions != (store.Preconditions{}) {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "preconditions are for the delete of one object"}
	}
	q, err := c.selection(r)
	if err != nil {
		return err
	}
	page, err := from.List(r.Context(), q)
	if err != nil {
		return err
	}
	for _, o := range page.Items {
		// What has taken the name of o since was not selected.
		_, err := from.Delete(r.Context(), o.Key, store.Preconditions{UID: metaText(o.Data, "uid")})
		if err != nil && !errors.Is(err, listwatch.NotFound) && !errors.Is(err, listwatch.Conflict) {
			return err
		}
	}
	writeSuccess(w, r, listwatch.StatusDetails{Group: c.Group, Kind: c.Plural})
	return nil
}

// selection reads the selectors of the query. A parameter that would narrow what is deleted and is not known here is refused.
func (c call) selection(r *http.Request) (q listwatch.Query, err error) {
	params := r.URL.Query()
	for _, name := range []string{"limit", "continue", "resourceVersion", "resourceVersionMatch", "shardSelector"} {
		if v := params.Get(name); v != "" && v != "0" {
			return q, &listwatch.Error{Code: listwatch.Invalid, Message: name + " is not supported for the delete of a collection"}
		}
	}
	q.Namespace = c.namespace
	if q.Labels, err = listwatch.ParseLabelSelector(params.Get("labelSelector")); err != nil {
		return q, err
	}
	q.Fields, err = listwatch.ParseFieldSelector(params.Get("fieldSelector"))
	return q, err
}

func writeSuccess(w http.ResponseWriter, r *http.Request, d listwatch.StatusDetails) {
	watchserver.WriteJSON(w, r, http.StatusOK, listwatch.Status{Kind: "Status", APIVersion: "v1", Status: "Success", Details: &d})
}
