package kubeapi

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/strategicpatch"
	"github.com/listwatch/listwatch/store"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	jsonPatchType      = "application/json-patch+json"
	mergePatchType     = "application/merge-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
	applyPatchType     = "application/apply-patch+yaml"
	applyCBORPatchType = "application/apply-patch+cbor"
)

// A patchFunc applies a patch to the object in doc, which is compact JSON, and returns the JSON of
// the changed object.
type patchFunc func(doc []byte) ([]byte, error)

// A changeFunc returns the object that is to replace old.
type changeFunc func(old *store.Document) (*store.Document, error)

// patch handles a PATCH of an object.
func (h *Handler) patch(w http.ResponseWriter, r *http.Request, c call) error {
	q, err := c.Admitted.Query()
	if err != nil {
		return err
	}
	mediaType, err := patchMediaType(r, c.patchSchema(c.Subresource))
	if err != nil {
		return err
	}
	o, err := options.Patch(q, mediaType)
	if err != nil {
		return err
	}
	data, end, err := h.readBody(w, r, c.Admitted)
	if err != nil {
		return err
	}
	c.bodyBytes = len(data)
	if mediaType == applyPatchType || mediaType == applyCBORPatchType {
		config, err := h.readConfiguration(w, r, c, o, mediaType, data)
		if end(); err != nil {
			return err
		}
		return h.apply(w, r, c, o, config)
	}
	to := c.target(o.DryRun)
	if conditions, ok := c.readRenewal(mediaType, data); ok {
		end()
		renewed, err := to.Renew(r.Context(), c.Key, conditions)
		if err != nil {
			return err
		}
		c.writeObject(w, r, http.StatusOK, renewed)
		c.Wrote(r, to, renewed)
		return nil
	}
	p, err := c.readPatch(w, o, mediaType, data)
	if end(); err != nil {
		return err
	}
	change := func(old *store.Document) (*store.Document, error) {
		next, unknown, err := h.patched(c, p, old)
		if err != nil {
			return nil, err
		}
		if err := report(w, o.FieldValidation, unknownWarnings(unknown), c.strictPatchError); err != nil {
			return nil, err
		}
		if next, err = dropRepeatedOwners(w, next); err != nil {
			return nil, err
		}
		return c.complete(next)
	}
	patched, err := c.update(r.Context(), to, listwatch.Preconditions{}, manager(r, o), change)
	if err != nil {
		return err
	}
	c.writeObject(w, r, http.StatusOK, patched)
	c.Wrote(r, to, patched)
	return nil
}

// readRenewal reports whether a patch only renews an object that may expire, and returns its
// preconditions.
func (c call) readRenewal(mediaType string, data []byte) (p listwatch.Preconditions, ok bool) {
	if c.Collection.Spec().TTL == nil || c.Subresource != "" ||
		mediaType != mergePatchType && mediaType != strategicPatchType {
		return p, false
	}
	compact, err := rawjson.Compact(data)
	if err != nil {
		return p, false
	}
	return store.ReadRenewal(compact)
}

// patchTypes returns the media types of patches for objects with the schema t. Strategic merge
// patches need a schema, which determines the lists to merge. Without a schema they are rejected,
// as in Kubernetes for custom resources.
func patchTypes(t *schema.Type) []string {
	if t == nil {
		return []string{jsonPatchType, mergePatchType, applyPatchType, applyCBORPatchType}
	}
	return []string{jsonPatchType, mergePatchType, strategicPatchType, applyPatchType, applyCBORPatchType}
}

// patchSchema returns the schema for strategic merge patches of an object or subresource. It
// returns nil if such patches are rejected.
func (r Resource) patchSchema(subresource string) *schema.Type {
	switch {
	case r.Schema == nil || r.Custom:
		return nil
	case subresource == "scale":
		return scaleSchema()
	}
	return r.Schema
}

// patchMediaType returns the media type of the patch in r. It returns an error if objects with the
// schema t do not support this type.
func patchMediaType(r *http.Request, t *schema.Type) (string, error) {
	contentType := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(patchTypes(t), mediaType) {
		return "", unsupportedPatch(contentType, mediaType, t)
	}
	return mediaType, nil
}

// readPatch parses a patch with the given media type. It also checks the members of the patch
// itself.
func (c call) readPatch(w http.ResponseWriter, o options.Write, mediaType string, data []byte) (patchFunc, error) {
	compact, err := rawjson.Compact(data)
	if err != nil {
		return nil, patch.Invalid(err)
	}
	inspected := rawjson.Inspect(compact)
	err = checkFields(w, o.FieldValidation, string(inspected.OutOfRange), inspected.Dropped, c.strictPatchError)
	if err != nil {
		return nil, err
	}
	changes := inspected.Unique
	if mediaType == jsonPatchType {
		unknown := unknownWarnings(patch.UnknownMembers(changes))
		if err := report(w, o.FieldValidation, unknown, c.strictPatchError); err != nil {
			return nil, err
		}
		return patch.JSON(changes, DefaultMaxBodyBytes)
	}
	if changes[0] != '{' {
		return nil, patch.Invalid(fmt.Errorf("a merge patch must be a JSON object"))
	}
	if mediaType == strategicPatchType {
		t := c.patchSchema(c.Subresource)
		return func(doc []byte) ([]byte, error) { return strategicpatch.Apply(doc, changes, t) }, nil
	}
	return func(doc []byte) ([]byte, error) { return patch.Merge(doc, changes) }, nil
}

// unsupportedPatch returns an error of status 415 that names the supported types. kubectl
// shows its message to the user.
func unsupportedPatch(contentType, mediaType string, t *schema.Type) error {
	message := fmt.Sprintf("patches of type %q are not supported", contentType)
	switch mediaType {
	case strategicPatchType:
		message = "strategic merge patches are not supported for this resource: use kubectl patch --type=merge or --type=json"
	}
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: message + " - accepted media types include: " + strings.Join(patchTypes(t), ", "),
	}
}

// patched applies p to old. It returns the result, and the paths of its unknown fields that old
// does not have. The result must not exceed the limit for bodies, so that repeated patches cannot
// make an object larger than a client could send in one request. It must also have the right kind
// and apiVersion, and fields of the right types. In a patch of the status of a custom resource,
// kind and apiVersion have no effect.
func (h *Handler) patched(
	c call, p patchFunc, old *store.Document,
) (next *store.Document, unknown []string, err error) {
	// Another program that writes to the database may have stored duplicate members.
	out, err := p(rawjson.Inspect(old.JSON()).Unique)
	if err != nil {
		return nil, nil, err
	}
	if limit := h.bodyBytes(); limit >= 0 && int64(len(out)) > limit {
		return nil, nil, apihttp.BodyTooLarge(limit)
	}
	if out[0] != '{' {
		return nil, nil, patch.InvalidResult(errors.New("the object must be a JSON object"))
	}
	if next, err = store.ParseDocument(out); err != nil {
		return nil, nil, err
	}
	if next, err = c.checkPatchedType(next); err != nil {
		return nil, nil, err
	}
	if unknown, err = c.checkTypes(next); err != nil {
		return nil, nil, patch.InvalidResult(err)
	}
	for _, name := range []string{"kind", "apiVersion"} {
		if c.Custom && c.Subresource != "scale" && text(next, name) == "" {
			return nil, nil, patch.InvalidResult(fmt.Errorf("it removes %s", name))
		}
	}
	if unknown != nil {
		known := c.Schema.Unknown(old.JSON())
		unknown = slices.DeleteFunc(unknown, func(field string) bool { return slices.Contains(known, field) })
	}
	return next, unknown, nil
}

// checkPatchedType returns an error if object, the result of a patch, has the wrong kind or
// apiVersion. It sets both in a patch of the status of a custom resource.
func (c call) checkPatchedType(object *store.Document) (_ *store.Document, err error) {
	if c.Subresource == "scale" {
		return object, nil // checkScale checks them
	}
	if c.Custom {
		if _, err := groupVersionOf(object); err != nil {
			return nil, err
		}
	}
	for name, want := range map[string]string{"kind": c.Kind, "apiVersion": c.APIVersion()} {
		if c.Subresource == "status" && c.Custom {
			if object, err = withTypeMember(object, name, want); err != nil {
				return nil, err
			}
		}
	}
	if err := c.checkKind(object); err != nil {
		return nil, err
	}
	return object, nil
}

// groupVersionOf returns the apiVersion of an object, the result of a patch.
func groupVersionOf(object *store.Document) (kubeschema.GroupVersion, error) {
	v, err := kubeschema.ParseGroupVersion(text(object, "apiVersion"))
	if err != nil {
		return v, patch.InvalidResult(err)
	}
	return v, nil
}

// checkKind returns an error of status 422 if an object, the result of a patch, has the wrong kind
// or apiVersion.
func (c call) checkKind(object *store.Document) error {
	if c.Subresource == "scale" {
		return nil // checkScale checks them
	}
	var errs field.ErrorList
	for name, want := range map[string]string{"kind": c.Kind, "apiVersion": c.APIVersion()} {
		if got := text(object, name); got != "" && got != want {
			errs = append(errs, field.Invalid(field.NewPath(name), got, "must be "+want))
		}
	}
	if errs == nil {
		return nil
	}
	group, kind := c.Group, c.Kind
	// As in Kubernetes, an error about a custom resource names the type in the patched object.
	if c.isCustom() {
		version, err := groupVersionOf(object)
		if err != nil {
			return err
		}
		group, kind = version.Group, text(object, "kind")
	}
	return apistatus.Invalid(group, kind, c.Name, errs)
}
