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

// patchOperations is how many operations a JSON patch may have, as in kube-apiserver.
const maxPatchOperations = 10000

// patchWork bounds operations times bytes of the object, for an operation may move all that is in a list: a few hundred operations
// on an object of 1 MiB, thousands on those of usual sizes.
const maxPatchWork = 256 << 20

// A patcher makes an object's JSON of what it was; doc is compact.
type patchFunc func(doc []byte) ([]byte, error)

// patchTypes are the media types of patches of objects whose fields t knows. Without a schema, nothing would tell a strategic merge
// patch which lists to merge: custom resources have none in Kubernetes either.
func patchTypes(t *schema.Type) []string {
	if t == nil {
		return []string{jsonPatchType, mergePatchType}
	}
	return []string{jsonPatchType, mergePatchType, strategicPatchType}
}

// patched is what is known of the object that a patch changes; nil: nothing.
func (c resourceRequest) patchSchema() *schema.Type {
	if c.Schema == nil || c.subresource != "scale" {
		return c.Schema
	}
	return scaleSchema()
}

// readPatch reads a patch, of the media type that the request says, of an object whose fields t knows. settle sees to members that come twice
// in it; it is called with compact JSON.
func readPatch(contentType string, data []byte, t *schema.Type, settle func([]byte) ([]byte, error)) (patchFunc, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(patchTypes(t), mediaType) {
		return nil, unsupportedPatch(contentType, mediaType, t)
	}
	patch, err := compact(data)
	if err != nil {
		return nil, invalidPatch(err)
	}
	if patch, err = settle(patch); err != nil {
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

// readJSONPatch reads a list of operations (RFC 6902).
func readJSONPatch(data []byte) (patchFunc, error) {
	// The library's errors speak of its types.
	if data[0] != '[' {
		return nil, invalidPatch(errors.New("a JSON patch must be a list of operations"))
	}
	i := -1
	err := rawjson.Elements(data, func(at rawjson.Span) error {
		if i++; data[at.Start] != '{' {
			return fmt.Errorf("operation %d is no object", i)
		}
		return nil
	})
	if err != nil {
		return nil, invalidPatch(err)
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, invalidPatch(err)
	}
	if len(operations) > maxPatchOperations {
		return nil, invalidPatch(fmt.Errorf("it has %d operations, and %d are allowed", len(operations), maxPatchOperations))
	}
	for i, o := range operations {
		if err := checkOperation(o); err != nil {
			return nil, invalidPatch(fmt.Errorf("operation %d: %w", i, err))
		}
	}
	o := jsonpatch.NewApplyOptions()
	o.EscapeHTML = false // strings stay as they were spelt
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

// misfit is a 422: the patch can be read, but not be made of this object.
func inapplicablePatch(err error) error {
	if e := listwatch.AsError(err); e.Message != "" {
		err = errors.New(e.Message) // without the code
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: "the patch does not fit the object", Err: err,
	}
}

// checkOperation refuses what the library would take for something else, and paths too deep.
func checkOperation(o jsonpatch.Operation) error {
	pointers := []string{"path"}
	switch kind := o.Kind(); kind {
	case "add", "replace", "test":
		if _, ok := o["value"]; !ok {
			return fmt.Errorf("%s without a value", kind)
		}
	case "remove":
	case "move", "copy":
		pointers = append(pointers, "from")
	default:
		return fmt.Errorf("op is %q, want one of add, remove, replace, move, copy and test", kind)
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
			// An object can't be replaced as a whole by a patch: that is what PUT is for.
			return fmt.Errorf("%s is %q, want a JSON pointer that begins with a slash", name, pointer)
		case strings.Count(pointer, "/") > maxPatchDepth:
			return fmt.Errorf("%s reaches deeper than %d levels", name, maxPatchDepth)
		}
	}
	return nil
}

// unknownPatch is a 415 that says what works; kubectl's users see it.
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
