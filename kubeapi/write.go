package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/store"
)

// withoutVersion is a merge patch that removes the resourceVersion of an object, for writes in
// which it has no effect, as in Kubernetes.
var withoutVersion = []byte(`{"metadata":{"resourceVersion":null}}`)

// create handles a POST to a collection.
func (h *Handler) create(w http.ResponseWriter, r *http.Request, c call) error {
	o, object, end, err := h.readWrite(w, r, c, options.Create)
	if err != nil {
		return err
	}
	object, err = c.prepareCreate(object, o, manager(r, o))
	if end(); err != nil {
		return err
	}
	to := c.target(o.DryRun)
	created, err := to.CreateDocument(r.Context(), c.Namespace, object)
	if err != nil {
		return c.nameDeletion(r.Context(), object, err)
	}
	c.writeObject(w, r, http.StatusCreated, created)
	c.Wrote(r, to, created)
	return nil
}

// prepareCreate validates object, which the given manager wants to create, and returns it as it
// should be stored.
func (c call) prepareCreate(object *store.Document, o options.Write, manager string) (*store.Document, error) {
	object, err := c.withoutStatus(object)
	if err == nil {
		object, err = c.complete(object)
	}
	if err != nil {
		return nil, err
	}
	if err := c.validateObject(nil, object); err != nil {
		return nil, err
	}
	if object, err = c.track(nil, object, manager); err != nil {
		return nil, err
	}
	// Kubernetes ignores an invalid version on create, too.
	version := text(object, "metadata", "resourceVersion")
	if _, invalid := listwatch.ParseVersion(version); invalid != nil || o.DryRun && version != "" {
		return parseMerged(object, withoutVersion)
	}
	return object, nil
}

// replace handles a PUT to an object. metadata.resourceVersion and metadata.uid in the body
// are preconditions.
func (h *Handler) replace(w http.ResponseWriter, r *http.Request, c call) error {
	o, object, end, err := h.readWrite(w, r, c, options.Update)
	if err != nil {
		return err
	}
	end()
	c.bodyBytes = len(object.JSON())
	// Require the name, because a body without it may be a mistake, and would empty a subresource.
	if name := text(object, "metadata", "name"); name != c.Name {
		return c.nameMismatch("name", name, c.Name)
	}
	if err := c.checkNamespace(object); err != nil {
		return err
	}
	if object, err = c.complete(object); err != nil {
		return err
	}
	p := listwatch.Preconditions{UID: text(object, "metadata", "uid")}
	if p.Version, err = listwatch.ParseVersion(text(object, "metadata", "resourceVersion")); err != nil {
		return err
	}
	to := c.target(o.DryRun)
	updated, err := c.update(r.Context(), to, p, manager(r, o), func(old *store.Document) (*store.Document, error) {
		return c.keepStatus(old, object)
	})
	if err != nil {
		return err
	}
	c.writeObject(w, r, http.StatusOK, updated)
	c.Wrote(r, to, updated)
	return nil
}

// ignoresStatus reports whether the status in a request has no effect. In Kubernetes, only writes
// to the subresource status change the status of a custom resource that declares it.
func (c call) ignoresStatus() bool {
	return (c.Custom || c.SeparateStatus) && c.Subresource == "" && c.hasSubresource("status")
}

// withoutStatus returns object, which is to be created or applied, without its status if the status
// has no effect.
func (c call) withoutStatus(object *store.Document) (*store.Document, error) {
	if !c.ignoresStatus() || object.Lookup("status") == nil {
		return object, nil
	}
	return withStatus(object, nil)
}

// keepStatus returns next with the status of old if next has no status, or if its status has no
// effect. A writer that knows only the rest of the object must not delete the status, which has its
// own subresource.
func (c call) keepStatus(old, next *store.Document) (*store.Document, error) {
	stored, status := old.Lookup("status"), next.Lookup("status")
	switch {
	case bytes.Equal(stored, status):
		return next, nil
	case c.ignoresStatus(), status == nil && c.Subresource == "" && c.hasSubresource("status"):
		return withStatus(next, stored)
	}
	return next, nil
}

// withStatus returns object with the given status, or without a status if it is nil or null.
func withStatus(object *store.Document, status []byte) (*store.Document, error) {
	data, err := patch.WithStatus(object.JSON(), status)
	if err != nil {
		return nil, err
	}
	return store.ParseDocument(data)
}

// readWrite reads and checks the options and the object in the body of a create or an update.
// Unless it returns an error, the caller must call end as readBody requires.
func (h *Handler) readWrite(
	w http.ResponseWriter, r *http.Request, c call, read func(url.Values) (options.Write, error),
) (o options.Write, object *store.Document, end func(), err error) {
	q, err := c.Admitted.Query()
	if err != nil {
		return o, nil, nil, err
	}
	if o, err = read(q); err != nil {
		return o, nil, nil, err
	}
	data, end, err := h.readObject(w, r, c.Admitted)
	if err != nil {
		return o, nil, nil, err
	}
	if object, err = c.parseObject(w, o, data); err != nil {
		end()
		return o, nil, nil, err
	}
	return o, object, end, nil
}

// parseObject parses and checks the object in the body of a create or an update.
func (c call) parseObject(w http.ResponseWriter, o options.Write, data []byte) (*store.Document, error) {
	if len(data) == 0 {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "the request body is empty; it must contain the object",
		}
	}
	object, err := store.ParseDocument(data)
	if err != nil {
		return nil, err
	}
	err = checkFields(w, o.FieldValidation, object.OutOfRange(), object.Duplicates(), c.strictError)
	if err != nil {
		return nil, err
	}
	if err := c.requireKind(object); err != nil {
		return nil, err
	}
	var unknown []string
	if c.checkCustomKind(object) == nil {
		unknown, err = c.checkTypes(object)
	} else { // validateObject reports the wrong kind later
		unknown = c.Schema.Unknown(object.JSON())
	}
	if err == nil {
		err = report(w, o.FieldValidation, unknownWarnings(unknown), c.strictError)
	}
	if err != nil {
		return nil, err
	}
	return dropRepeatedOwners(w, object)
}

// nameDeletion returns err, the error of a create. If the object exists because finalizers delay
// its deletion, the message says so, as in Kubernetes.
func (c call) nameDeletion(ctx context.Context, object *store.Document, err error) error {
	if !errors.Is(err, listwatch.AlreadyExists) {
		return err
	}
	key := listwatch.Key{Namespace: c.Namespace, Name: text(object, "metadata", "name")}
	old, missing := c.Collection.Get(ctx, key)
	if missing != nil || rawjson.Lookup(old.Data, "metadata", "deletionTimestamp") == nil {
		return err
	}
	named := *listwatch.AsError(err)
	named.Message = "object is being deleted: " + named.Message
	return &named
}

// update applies p to the object, or to the part of it that the subresource names. The given
// manager becomes the manager of the changes. If p sets a resourceVersion, this is a precondition,
// as in Kubernetes.
func (c call) update(
	ctx context.Context, to *store.Collection, conditions listwatch.Preconditions, manager string, p changeFunc,
) (*listwatch.Object, error) {
	if c.Subresource == "scale" {
		return c.updateScale(ctx, to, conditions, manager, p)
	}
	return to.UpdateDocument(ctx, c.Key, conditions, c.bodyBytes, func(
		old *listwatch.Object, stored *store.Document,
	) (*store.Document, error) {
		next, err := p(stored)
		if err != nil {
			return nil, err
		}
		named := text(next, "metadata", "name") == c.Name // otherwise the store reports the name
		if c.Custom && named && slices.Contains([]string{"", "0"}, text(next, "metadata", "resourceVersion")) {
			return nil, c.missingVersion()
		}
		if err := c.checkIdentity(old, stored, next); err != nil {
			return nil, err
		}
		switch {
		case c.ignoresStatus():
			next, err = c.keepStatus(stored, next)
		case c.Subresource != "status":
		case text(next, "metadata", "name") == "":
			err = c.nameMismatch("name", "", c.Name)
		default:
			next, err = withStatus(stored, next.Lookup("status"))
		}
		if err != nil {
			return nil, err
		}
		if err := c.validateObject(stored, next); err != nil {
			return nil, err
		}
		return c.track(stored, next, manager)
	})
}

// target returns the collection to write to, or a dry run of it.
func (c call) target(dryRun bool) *store.Collection {
	if dryRun {
		return c.Collection.DryRun()
	}
	return c.Collection
}
