package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readDelete reads the options of a delete, and returns them with the collection to delete from.
func (h *Handler) readDelete(
	w http.ResponseWriter, r *http.Request, c call,
	read func(url.Values, []byte) (metav1.DeleteOptions, error),
) (from *store.Collection, o metav1.DeleteOptions, err error) {
	q, err := c.Admitted.Query()
	if err != nil {
		return nil, o, err
	}
	data, end, err := h.readObject(w, r, c.Admitted)
	if err != nil {
		return nil, o, err
	}
	defer end()
	o, err = read(q, data)
	return c.target(len(o.DryRun) > 0), o, err
}

// delete handles a DELETE of an object. It responds with a Status if the object was
// deleted, and with the object if finalizers delay the deletion.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, c call) error {
	from, o, err := h.readDelete(w, r, c, options.Delete)
	if err != nil {
		return err
	}
	h.warnOfPolicy(c, o)
	var conditions listwatch.Preconditions
	unsafe := o.IgnoreStoreReadErrorWithClusterBreakingPotential
	if o.Preconditions != nil || unsafe != nil && *unsafe {
		old, err := c.Collection.Get(r.Context(), c.Key)
		if err != nil {
			return err
		}
		if unsafe != nil && *unsafe {
			return c.conflict(
				old,
				"the object can be read, so it must be deleted without ignoreStoreReadErrorWithClusterBreakingPotential")
		}
		if conditions, err = c.conditions(old, o.Preconditions); err != nil {
			return err
		}
	}
	last, isGone, err := h.remove(r.Context(), c, from, c.Key, conditions, o)
	if err != nil {
		return err
	}
	defer func() { c.Wrote(r, from, last) }()
	switch {
	case !isGone:
		c.writeObject(w, r, markedStatus(o), last)
		return nil
	case h.Collected && c.Deletes.ReturnsObject:
		c.writeObject(w, r, http.StatusOK, last)
		return nil
	}
	writeSuccess(
		w, r, kubestatus.Details{
			Name: last.Key.Name, Group: c.Group, Kind: c.Plural, UID: metadataString(last.Data, "uid"),
		})
	return nil
}

// remove deletes the object at key. isGone is false if finalizers delay the deletion.
func (h *Handler) remove(
	ctx context.Context, c call, from *store.Collection, key listwatch.Key,
	p listwatch.Preconditions, o metav1.DeleteOptions,
) (last *listwatch.Object, isGone bool, err error) {
	if h.Collected {
		return c.Resource.Delete(ctx, from, key, p, o)
	}
	last, err = from.Delete(ctx, key, p)
	if err != nil {
		return nil, false, err
	}
	return last, rawjson.Lookup(last.Data, "metadata", "deletionTimestamp") == nil, nil
}

// warnOfPolicy adds the warning about a delete with the options o to the response. As in
// Kubernetes, the response also has it if the object does not exist.
func (h *Handler) warnOfPolicy(c call, o metav1.DeleteOptions) {
	if text := c.Deletes.warning(o); h.Collected && text != "" {
		c.warn(text)
	}
}

// markedStatus returns the HTTP status of the response to a delete that finalizers delay. As in
// Kubernetes, the status is 202 only for clients that set the old option orphanDependents to false.
func markedStatus(o metav1.DeleteOptions) int {
	//lint:ignore SA1019 old clients still use the option
	if o.OrphanDependents != nil && !*o.OrphanDependents {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// conditions converts the preconditions of a delete to preconditions of the store. Every member
// that is present is a condition, even if it is empty. conditions returns an error if old, the
// stored object, does not meet them.
func (c call) conditions(old *listwatch.Object,
	o *metav1.Preconditions,
) (p listwatch.Preconditions, err error) {
	if o == nil {
		return p, nil
	}
	p = listwatch.Preconditions{UID: metadataString(old.Data, "uid"), Version: old.Version}
	if o.UID != nil && string(*o.UID) != p.UID {
		return p, c.preconditionFailed(old, "UID", string(*o.UID), p.UID, "deleted and then recreated")
	}
	if o.ResourceVersion == nil {
		p.Version = 0
	} else if *o.ResourceVersion != old.Version.String() {
		return p, c.preconditionFailed(old, "ResourceVersion", *o.ResourceVersion, old.Version.String(), "modified")
	}
	return p, nil
}

// preconditionFailed returns the error of a delete with a precondition that does not hold. As in
// Kubernetes, the error's details contain the kind instead of the plural.
func (c call) preconditionFailed(old *listwatch.Object, what, want, got, because string) error {
	return apistatus.Convert(apierrors.NewConflict(schema.GroupResource{Group: c.Group, Resource: c.Kind}, old.Key.Name,
		fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s",
			what, want, what, got, because)))
}

// deleteCollection handles a DELETE of all objects that the selectors in the query match. It
// responds with the objects as they were before. The delete is not a transaction: objects that are
// created meanwhile may remain, and if the request fails, some objects may already be deleted.
func (h *Handler) deleteCollection(w http.ResponseWriter, r *http.Request, c call) error {
	from, o, err := h.readDelete(w, r, c, options.DeleteCollection)
	if err != nil {
		return err
	}
	h.warnOfPolicy(c, o)
	q, err := c.selection(r)
	if err != nil {
		return err
	}
	page, err := from.List(r.Context(), q)
	if err != nil {
		return err
	}
	var deleted []*listwatch.Object
	for _, old := range page.Items {
		conditions, err := c.conditions(old, o.Preconditions)
		if err != nil {
			return err
		}
		// Require the UID, because another object may have taken the name of old meanwhile.
		conditions.UID = metadataString(old.Data, "uid")
		_, _, err = h.remove(r.Context(), c, from, old.Key, conditions, o)
		switch {
		case err == nil:
			deleted = append(deleted, old)
		case !errors.Is(err, listwatch.NotFound) && !errors.Is(err, listwatch.Conflict):
			return err
		}
	}
	page.Items = deleted
	err = c.writeList(w, r, page)
	c.Wrote(r, from, nil)
	return err
}

// selection parses the selectors, the limit and the continue token in the query. It rejects
// unsupported parameters that would reduce the number of deleted objects.
func (c call) selection(r *http.Request) (q listwatch.Query, err error) {
	params := apihttp.QueryOf(r)
	for _, name := range []string{"resourceVersion", "resourceVersionMatch", "shardSelector"} {
		if v := params.Get(name); v != "" && v != "0" {
			return q, &listwatch.Error{
				Code: listwatch.Invalid, Message: name + " is not supported for deletes of a collection",
			}
		}
	}
	q.Namespace, q.Continue = c.Namespace, params.Get("continue")
	if text := params.Get("limit"); text != "" {
		q.Limit, _ = strconv.Atoi(text) // options.DeleteCollection has checked it
	}
	if q.Labels, err = c.Admitted.Params.Labels(); err != nil {
		return q, err
	}
	if q.Fields, err = c.Admitted.Params.Fields(); err != nil {
		return q, err
	}
	return q, c.checkSelectedFields(q.Fields)
}

// checkSelectedFields returns an error if Kubernetes would reject s: if s selects by namespace
// although the kind has no such field, or if the path names an object and s does not select that
// name.
func (c call) checkSelectedFields(s listwatch.FieldSelector) error {
	if len(s.Paths()) == 0 {
		return nil
	}
	if !c.hasNamespaceField() && slices.Contains(s.Paths(), listwatch.FieldNamespace) {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf(
				"field selector: field label not supported: %q: objects of %s have no namespace",
				listwatch.FieldNamespace, c.QualifiedName()),
		}
	}
	if name, _ := s.Equality(listwatch.FieldName); c.Name != "" && name != c.Name {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("field selector: it must select %s=%s, the name in the path",
				listwatch.FieldName, c.Name),
		}
	}
	return nil
}

func writeSuccess(w http.ResponseWriter, r *http.Request, d kubestatus.Details) {
	apihttp.WriteObject(w, r, http.StatusOK,
		kubestatus.Status{Kind: "Status", APIVersion: "v1", Status: "Success", Details: &d})
}
