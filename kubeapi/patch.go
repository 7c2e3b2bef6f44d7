package kubeapi

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/strategicpatch"
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

// patch handles a PATCH of an object.
func (h *Handler) patch(w http.ResponseWriter, r *http.Request, c call) error {
	q, err := c.admitted.Query()
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
	data, end, err := h.readBody(w, r, c.admitted)
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
	p, err := readPatch(mediaType, data, c.patchSchema(c.Subresource), func(patch []byte) ([]byte, error) {
		return c.validatePatch(w, o, mediaType, patch)
	})
	if end(); err != nil {
		return err
	}
	to := c.target(o.DryRun)
	check := func(doc []byte) ([]byte, error) {
		out, err := c.withTypeCheck(h.withSizeLimit(p))(doc)
		if err == nil {
			err = report(w, o.FieldValidation, c.unknownFields(doc, out), c.strictPatchError)
		}
		return dropRepeatedOwners(w, out), err
	}
	patched, err := c.update(r.Context(), to, listwatch.Preconditions{}, manager(r, o), check)
	if err != nil {
		return err
	}
	c.writeObject(w, r, http.StatusOK, patched)
	c.wrote(r, to, patched)
	return nil
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

// patchMediaType returns the media type of the patch in r, which must be supported for objects
// with the schema t.
func patchMediaType(r *http.Request, t *schema.Type) (string, error) {
	contentType := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(patchTypes(t), mediaType) {
		return "", unsupportedPatch(contentType, mediaType, t)
	}
	return mediaType, nil
}

// readPatch parses a patch with the given media type for an object with the schema t.
// dropDuplicates handles duplicate members of the patch, which it receives as compact JSON.
func readPatch(mediaType string, data []byte, t *schema.Type,
	dropDuplicates func([]byte) ([]byte, error),
) (patchFunc, error) {
	changes, err := compact(data)
	if err != nil {
		return nil, patch.Invalid(err)
	}
	if changes, err = dropDuplicates(changes); err != nil {
		return nil, err
	}
	if mediaType == jsonPatchType {
		return patch.JSON(changes, DefaultMaxBodyBytes)
	}
	if changes[0] != '{' {
		return nil, patch.Invalid(fmt.Errorf("a merge patch must be a JSON object"))
	}
	if mediaType == strategicPatchType {
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

// validatePatch handles duplicate and unknown members of the patch itself. data is compact JSON.
func (c call) validatePatch(w http.ResponseWriter, o options.Write, mediaType string,
	data []byte,
) ([]byte, error) {
	unique, err := applyFieldValidation(w, o.FieldValidation, data, c.strictPatchError)
	if err != nil || mediaType != jsonPatchType {
		return unique, err
	}
	return unique, report(w, o.FieldValidation, unknownWarnings(patch.UnknownMembers(unique)), c.strictPatchError)
}

// withSizeLimit makes p fail if its result exceeds the limit for bodies, so that repeated
// patches cannot make an object larger than a client could send in one request.
func (h *Handler) withSizeLimit(p patchFunc) patchFunc {
	limit := h.bodyBytes()
	if limit < 0 {
		return p
	}
	return func(doc []byte) ([]byte, error) {
		out, err := p(doc)
		if err == nil && int64(len(out)) > limit {
			return nil, apihttp.BodyTooLarge(limit)
		}
		return out, err
	}
}

// withTypeCheck makes p fail if its result has the wrong kind or apiVersion, or fields of a wrong
// type. In a patch of the status of a custom resource, kind and apiVersion have no effect.
func (c call) withTypeCheck(p patchFunc) patchFunc {
	return func(doc []byte) ([]byte, error) {
		out, err := p(doc)
		if err != nil {
			return nil, err
		}
		if c.Custom && c.Subresource != "scale" {
			if _, err := groupVersionOf(out); err != nil {
				return nil, err
			}
		}
		if c.Subresource == "status" && c.Custom {
			if out, err = withTypeMember(out, "kind", c.Kind); err != nil {
				return nil, err
			}
			if out, err = withTypeMember(out, "apiVersion", c.APIVersion()); err != nil {
				return nil, err
			}
		}
		if err := c.checkKind(out); err != nil {
			return nil, err
		}
		if err := c.checkTypes(out); err != nil {
			return nil, patch.InvalidResult(err)
		}
		for _, name := range []string{"kind", "apiVersion"} {
			if c.Custom && c.Subresource != "scale" && jsonvalue.Value(out).At(name).Text() == "" {
				return nil, patch.InvalidResult(fmt.Errorf("it removes %s", name))
			}
		}
		return out, nil
	}
}

// groupVersionOf returns the apiVersion of an object, the result of a patch.
func groupVersionOf(object []byte) (kubeschema.GroupVersion, error) {
	v, err := kubeschema.ParseGroupVersion(jsonvalue.Value(object).At("apiVersion").Text())
	if err != nil {
		return v, patch.InvalidResult(err)
	}
	return v, nil
}

// checkKind returns an error of status 422 if an object, the result of a patch, has the wrong kind
// or apiVersion.
func (c call) checkKind(object []byte) error {
	if c.Subresource == "scale" {
		return nil // checkScale checks them
	}
	var errs field.ErrorList
	for name, want := range map[string]string{"kind": c.Kind, "apiVersion": c.APIVersion()} {
		if got, err := rawjson.String(rawjson.Lookup(object, name)); err == nil && got != "" && got != want {
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
		group, kind = version.Group, jsonvalue.Value(object).At("kind").Text()
	}
	return apistatus.Invalid(group, kind, c.Name, errs)
}
