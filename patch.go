package listwatch

import "context"

// A PatchType is the media type of a [Patch].
type PatchType string

const (
	// MergePatch has the new values of members; null deletes a member (rfc7396).
	MergePatch PatchType = "application/merge-patch+json"
	// JSONPatch is a list of operations, which may test values (rfc6902).
	JSONPatch PatchType = "application/json-patch+json"
	// StrategicMergePatch is a merge patch that can merge lists. Kubernetes supports it for
	// built-in kinds.
	StrategicMergePatch PatchType = "application/strategic-merge-patch+json"
	// ApplyPatch is a configuration for server-side apply: an object with only the members that the
	// writer wants to own. It creates the object if there is none.
	ApplyPatch PatchType = "application/apply-patch+yaml"
)

// A Patch changes a part of an object. The writer does not have to read the object first.
type Patch struct {
	Type PatchType
	// Data is the patch as JSON. It may contain metadata.resourceVersion or uid as preconditions.
	Data []byte
	// FieldManager is the name of the writer, which Kubernetes records as the owner of the changed
	// members. An [ApplyPatch] requires it.
	FieldManager string
	// Minimal reports that the caller does not need the new object. A Patcher may then return nil
	// instead of it, so that a server need not send it.
	Minimal bool
	// Force makes an ApplyPatch take members over from other owners. Otherwise such an apply fails
	// with code Conflict, and Details.Causes names the owners.
	Force bool
}

// A Patcher is a [Writer] that can also patch objects, such as a client.Remote. It returns the
// errors of a Writer. If the server does not support the type of the patch, the code is
// [Unsupported].
type Patcher interface {
	// Patch patches the object at key, and returns the new object. It may be nil if p is Minimal.
	Patch(ctx context.Context, key Key, p Patch) (*Object, error)
}
