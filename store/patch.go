package store

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/rawjson"
)

var _ listwatch.Patcher = (*Collection)(nil)

// Patch applies a [listwatch.MergePatch] to the object at key. If the patch has
// metadata.resourceVersion or uid, they are preconditions. Other types of patches fail with code
// Unsupported and status 415. FieldManager and Force have no effect. In a collection with a TTL, a
// patch without any other member is a [Collection.Renew]: Admit is not called.
func (c *Collection) Patch(ctx context.Context, key listwatch.Key, p listwatch.Patch) (*listwatch.Object, error) {
	return c.PatchIf(ctx, key, listwatch.Preconditions{}, p, 0)
}

// PatchIf is like Patch. It also checks the preconditions required, and that the length of the
// result is at most maxBytes. If maxBytes is zero or negative, the length is not limited.
func (c *Collection) PatchIf(
	ctx context.Context, key listwatch.Key, required listwatch.Preconditions, p listwatch.Patch, maxBytes int64,
) (*listwatch.Object, error) {
	if p.Type != listwatch.MergePatch {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
			Message: fmt.Sprintf("patches of type %q are not supported: must be %s", p.Type, listwatch.MergePatch),
		}
	}
	changes, own, err := readPatch(ctx, p.Data)
	if err == nil {
		required, err = bothPreconditions(required, own)
	}
	if err != nil {
		return nil, err
	}
	if c.spec.TTL != nil && isRenewal(changes) {
		return c.Renew(ctx, key, required)
	}
	return c.UpdateDocument(ctx, key, required, len(changes), func(
		old *listwatch.Object, _ *Document,
	) (*Document, error) {
		merged, err := rawjson.Merge(old.Data, changes)
		switch {
		case err != nil:
			return nil, badRequest("the patch is invalid: %v", err)
		case maxBytes > 0 && int64(len(merged)) > maxBytes:
			return nil, &listwatch.Error{
				Code: listwatch.Invalid, Status: http.StatusRequestEntityTooLarge, Reason: "RequestEntityTooLarge",
				Message: fmt.Sprintf("the patched object would exceed the limit of %d bytes", maxBytes),
			}
		}
		return parseUnique(merged)
	})
}

// readPatch returns the compact JSON of a merge patch, and the preconditions in it.
func readPatch(ctx context.Context, data []byte) (compact []byte, p listwatch.Preconditions, err error) {
	end, err := budget.BeginTurn(ctx, len(data))
	if err != nil {
		return nil, p, err
	}
	defer end()
	if compact, err = rawjson.Compact(data); err != nil || compact[0] != '{' {
		return nil, p, badRequest("the patch must be a JSON object")
	}
	var version string
	for name, value := range map[string]*string{"uid": &p.UID, "resourceVersion": &version} {
		if raw := rawjson.Lookup(compact, "metadata", name); raw != nil && !isNull(raw) {
			if *value, err = rawjson.String(raw); err != nil {
				return nil, p, badRequest("metadata.%s: %v", name, err)
			}
		}
	}
	p.Version, err = listwatch.ParseVersion(version)
	return compact, p, err
}

// isRenewal reports whether a merge patch has no members but metadata.uid and
// metadata.resourceVersion, which are preconditions.
func isRenewal(patch []byte) bool {
	members, err := rawjson.Split(patch)
	if err != nil || len(members) == 0 {
		return err == nil
	}
	metadata, err := rawjson.Split(members[0].Value)
	return err == nil && len(members) == 1 && members[0].Name == "metadata" &&
		!slices.ContainsFunc(metadata, func(m rawjson.Member) bool {
			return m.Name != "uid" && m.Name != "resourceVersion"
		})
}
