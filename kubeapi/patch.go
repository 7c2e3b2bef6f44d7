package kubeapi

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/strategicpatch"
)

const (
	jsonPatchType      = "application/json-patch+json"
	mergePatchType     = "application/merge-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
)

// maxPatchOperations limits the operations of a JSON patch, as in kube-apiserver.
const maxPatchOperations = 10000

// maxPatchWork limits the product of the number of operations and the size of the object in
// bytes, because one operation may move all elements of a list. The limit allows 256
// operations on an object of 1 MiB, and thousands of operations on objects of usual size.
const maxPatchWork = 256 << 20

// A patchFunc returns the JSON of an object after a patch. doc is compact.
type patchFunc func(doc []byte) ([]byte, error)

// patchTypes returns the media types of patches for objects with the schema t. Strategic
// merge patches need a schema, which determines the lists to merge. Without a schema they are
// rejected, as Kubernetes does for custom resources.
func patchTypes(t *schema.Type) []string {
	if t == nil {
		return []string{jsonPatchType, mergePatchType}
	}
	return []string{jsonPatchType, mergePatchType, strategicPatchType}
}

// patchSchema returns the schema of the object or subresource that a patch changes. It
// returns nil if there is none.
func (c resourceRequest) patchSchema() *schema.Type {
	if c.Schema == nil || c.subresource != "scale" {
		return c.Schema
	}
	return scaleSchema()
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
	patch, err := compact(data)
	if err != nil {
		return nil, invalidPatch(err)
	}
	if patch, err = dropDuplicates(patch); err != nil {
		return nil, err
	}
	if mediaType == jsonPatchType {
		return readJSONPatch(patch)
	}
	if patch[0] != '{' {
		return nil, invalidPatch(fmt.Errorf("a merge patch must be a JSON object"))
	}
	if mediaType == strategicPatchType {
		return func(doc []byte) ([]byte, error) { return strategicpatch.Apply(doc, patch, t) }, nil
	}
	return func(doc []byte) ([]byte, error) { return mergePatch(doc, patch) }, nil
}

// readJSONPatch parses a list of operations (RFC 6902).
func readJSONPatch(data []byte) (patchFunc, error) {
	// Check the form first, because the library's errors mention its Go types.
	if data[0] != '[' {
		return nil, invalidPatch(errors.New("a JSON patch must be a list of operations"))
	}
	i := -1
	err := rawjson.Elements(data, func(at rawjson.Span) error {
		if i++; data[at.Start] != '{' {
			return fmt.Errorf("operation %d is not an object", i)
		}
		return nil
	})
	if err != nil {
		return nil, invalidPatch(err)
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, inapplicablePatch(err)
	}
	if len(operations) > maxPatchOperations {
		return nil, invalidPatch(fmt.Errorf("it has %d operations; the limit is %d", len(operations), maxPatchOperations))
	}
	for i, o := range operations {
		if err := checkOperation(o); err != nil {
			return nil, inapplicablePatch(fmt.Errorf("operation %d: %w", i, err))
		}
	}
	o := jsonpatch.NewApplyOptions()
	o.EscapeHTML = false // keep strings as the client wrote them
	o.SupportNegativeIndices = false
	o.AccumulatedCopySizeLimit = DefaultMaxBodyBytes
	return func(doc []byte) ([]byte, error) {
		if len(operations)*len(doc) > maxPatchWork {
			return nil, invalidPatch(fmt.Errorf("%d operations are too many for an object of %d bytes", len(operations), len(doc)))
		}
		out, err := operations.ApplyWithOptions(doc, o)
		if err != nil {
			return nil, inapplicablePatch(err)
		}
		return out, nil
	}, nil
}

// inapplicablePatch returns an error of status 422: the patch is valid but cannot be
// applied to this object.
func inapplicablePatch(err error) error {
	if e := listwatch.AsError(err); e.Message != "" {
		err = errors.New(e.Message) // omits the code
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: "the patch cannot be applied to the object", Err: err,
	}
}

// checkOperation rejects operations that the library would misinterpret, and paths that are
// too deep.
func checkOperation(o jsonpatch.Operation) error {
	pointers := []string{"path"}
	switch kind := o.Kind(); kind {
	case "add", "replace", "test":
		if _, ok := o["value"]; !ok {
			return fmt.Errorf("%s has no value", kind)
		}
	case "remove":
	case "move", "copy":
		pointers = append(pointers, "from")
	default:
		return fmt.Errorf("op is %q, must be add, remove, replace, move, copy or test", kind)
	}
	for _, name := range pointers {
		if o[name] == nil {
			return fmt.Errorf("it has no %s", name)
		}
		pointer, err := rawjson.String(*o[name])
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case pointer == "" || pointer[0] != '/':
			// The empty pointer means the whole object, which only a PUT can replace.
			return fmt.Errorf("%s is %q, must be a JSON pointer that starts with a slash", name, pointer)
		case strings.Count(pointer, "/") > maxPatchDepth:
			return fmt.Errorf("%s is deeper than %d levels", name, maxPatchDepth)
		}
	}
	return nil
}

// unsupportedPatch returns an error of status 415 that names the supported types. kubectl
// shows its message to the user.
func unsupportedPatch(contentType, mediaType string, t *schema.Type) error {
	message := fmt.Sprintf("patches of type %q are not supported", contentType)
	switch mediaType {
	case strategicPatchType:
		message = "strategic merge patches are not supported for this resource, which has no schema: use kubectl patch --type=merge or --type=json"
	case "application/apply-patch+yaml", "application/apply-patch+cbor":
		message = "server-side apply is not supported: use kubectl apply without --server-side, or a merge patch"
	}
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: message + " - accepted media types include: " + strings.Join(patchTypes(t), ", "),
	}
}
