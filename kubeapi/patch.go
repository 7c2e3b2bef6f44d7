package kubeapi

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/strategicpatch"
)

const (
	jsonPatchType      = "application/json-patch+json"
	mergePatchType     = "application/merge-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
	applyPatchType     = "application/apply-patch+yaml"
	applyCBORPatchType = "application/apply-patch+cbor"
)

// A patchFunc returns the JSON of an object after a patch. doc is compact.
type patchFunc func(doc []byte) ([]byte, error)

// patchTypes returns the media types of patches for objects with the schema t. Strategic
// merge patches need a schema, which determines the lists to merge. Without a schema they are
// rejected, as Kubernetes does for custom resources.
func patchTypes(t *schema.Type) []string {
	if t == nil {
		return []string{jsonPatchType, mergePatchType, applyPatchType, applyCBORPatchType}
	}
	return []string{jsonPatchType, mergePatchType, strategicPatchType, applyPatchType, applyCBORPatchType}
}

// patchSchema returns the schema for strategic merge patches of an object or subresource. It
// returns nil if they are rejected.
func (r Resource) patchSchema(subresource string) *schema.Type {
	switch {
	case r.Schema == nil || r.NoStrategicPatch:
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
func readPatch(mediaType string, data []byte, t *schema.Type, dropDuplicates func([]byte) ([]byte, error)) (patchFunc, error) {
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
