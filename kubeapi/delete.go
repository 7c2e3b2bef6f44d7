package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// deleteOptions are the members of metav1.DeleteOptions that have an effect or are at least
// validated. Grace periods and propagation policies are accepted but have no effect,
// because no object depends on another one.
type deleteOptions struct {
	Kind               string
	DryRun             []string
	GracePeriodSeconds *int64
	OrphanDependents   *bool
	PropagationPolicy  *string
	Preconditions      struct{ UID, ResourceVersion *string }
}

// readDeleteOptions reads the options from the body or, if the body is empty, from the
// query. It also returns the collection to delete from.
func (h *Handler) readDeleteOptions(w http.ResponseWriter, r *http.Request, c resourceRequest) (from *store.Collection, o deleteOptions, err error) {
	from, _, err = c.writeTarget(r)
	if err != nil {
		return nil, o, err
	}
	data, err := h.readObject(w, r)
	if err != nil {
		return nil, o, err
	}
	if len(data) == 0 {
		err = o.readQuery(r.URL.Query())
	} else {
		err = o.readBody(data)
	}
	if err != nil {
		return nil, o, err
	}
	if policy := o.PropagationPolicy; policy != nil && !slices.Contains([]string{"", "Orphan", "Background", "Foreground"}, *policy) {
		return nil, o, invalidDelete(fmt.Sprintf("propagationPolicy is %q, must be Orphan, Background or Foreground", *policy))
	}
	from, err = from.WithDryRun(o.DryRun)
	return from, o, err
}

// readBody reads options from JSON.
func (o *deleteOptions) readBody(data []byte) error {
	err := json.Unmarshal(data, o)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return invalidDelete("got " + e.Value)
		}
		return invalidDelete(e.Field + ": got " + e.Value)
	}
	switch {
	case err != nil:
		return invalidDelete(err.Error())
	case o.Kind != "" && o.Kind != "DeleteOptions":
		return invalidDelete(fmt.Sprintf("the kind is %q", o.Kind))
	}
	return nil
}

// readQuery reads options from the query.
func (o *deleteOptions) readQuery(q url.Values) error {
	if v := q.Get("gracePeriodSeconds"); v != "" {
		if _, err := strconv.ParseInt(v, 10, 64); err != nil {
			return invalidDelete(fmt.Sprintf("gracePeriodSeconds is %q, must be an integer", v))
		}
	}
	if v := q.Get("propagationPolicy"); v != "" {
		o.PropagationPolicy = &v
	}
	return nil
}

func invalidDelete(why string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the body or the query of a delete must contain DeleteOptions: " + why}
}

// delete handles a DELETE of an object. It responds with a Status if the object was
// deleted, and with the object if finalizers delay the deletion.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, c resourceRequest) error {
	from, options, err := h.readDeleteOptions(w, r, c)
	if err != nil {
		return err
	}
	conditions, err := c.conditions(r.Context(), options)
	if err != nil {
		return err
	}
	o, err := from.Delete(r.Context(), c.key(), conditions)
	if err != nil {
		return err
	}
	defer func() { h.wrote(r, c, from, o) }()
	if rawjson.Lookup(o.Data, "metadata", "deletionTimestamp") != nil {
		return c.writeObject(w, r, http.StatusOK, o)
	}
	writeSuccess(w, r, listwatch.StatusDetails{Name: o.Key.Name, Group: c.Group, Kind: c.Plural, UID: metadataString(o.Data, "uid")})
	return nil
}

// conditions converts the preconditions of a delete to preconditions of the store. Every
// member that is present is a condition, even an empty one. If no object can fulfill a
// condition, conditions returns an error.
func (c resourceRequest) conditions(ctx context.Context, o deleteOptions) (p store.Preconditions, err error) {
	given := []struct {
		word, field string
		want        *string
	}{{"UID", "uid", o.Preconditions.UID}, {"ResourceVersion", "resourceVersion", o.Preconditions.ResourceVersion}}
	for _, g := range given {
		if g.want == nil {
			continue
		}
		version, err := listwatch.ParseVersion(*g.want)
		switch {
		case g.field == "uid" && *g.want != "":
			p.UID = *g.want
			continue
		case g.field == "resourceVersion" && err == nil && version != 0:
			p.Version = version
			continue
		}
		old, err := c.collection.Get(ctx, c.key())
		if err != nil {
			return p, err
		}
		return p, c.conflict(old, fmt.Sprintf("the %s in the precondition (%s) does not match the %s in record (%s)",
			g.word, *g.want, g.word, metadataString(old.Data, g.field)))
	}
	return p, nil
}

// deleteCollection handles a DELETE of all objects that the selectors in the query match.
// It responds with the objects that it has deleted or marked for deletion. It is not a
// transaction: objects that are created meanwhile may remain, and if it fails, some objects
// may already be deleted.
func (h *Handler) deleteCollection(w http.ResponseWriter, r *http.Request, c resourceRequest) error {
	from, options, err := h.readDeleteOptions(w, r, c)
	if err != nil {
		return err
	}
	if options.Preconditions.UID != nil || options.Preconditions.ResourceVersion != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "preconditions are supported only for the delete of a single object"}
	}
	q, err := c.selection(r)
	if err != nil {
		return err
	}
	page, err := from.List(r.Context(), q)
	if err != nil {
		return err
	}
	var deleted []*listwatch.Object
	for _, o := range page.Items {
		// Require the UID, because another object may have taken the name of o meanwhile.
		last, err := from.Delete(r.Context(), o.Key, store.Preconditions{UID: metadataString(o.Data, "uid")})
		switch {
		case err == nil:
			deleted = append(deleted, last)
		case !errors.Is(err, listwatch.NotFound) && !errors.Is(err, listwatch.Conflict):
			return err
		}
	}
	err = c.writeList(w, r, page.Version, deleted)
	h.wrote(r, c, from, nil)
	return err
}

// selection parses the selectors of the query. It rejects unsupported parameters that would
// reduce the number of deleted objects.
func (c resourceRequest) selection(r *http.Request) (q listwatch.Query, err error) {
	params := r.URL.Query()
	for _, name := range []string{"limit", "continue", "resourceVersion", "resourceVersionMatch", "shardSelector"} {
		if v := params.Get(name); v != "" && v != "0" {
			return q, &listwatch.Error{Code: listwatch.Invalid, Message: name + " is not supported for deletes of a collection"}
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
