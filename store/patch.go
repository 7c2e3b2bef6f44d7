package store

import (
	"context"
	"fmt"
	"net/http"

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
	if c.spec.TTL != nil {
		if _, ok := ReadRenewal(changes); ok {
			return c.Renew(ctx, key, required)
		}
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

// ReadRenewal reports whether a merge patch, as compact JSON, has no members but metadata.uid and
// metadata.resourceVersion. It returns these as preconditions. Such a patch changes nothing, so a
// server can call [Collection.Renew] instead of applying it.
func ReadRenewal(patch []byte) (p listwatch.Preconditions, ok bool) {
	members, err := rawjson.Split(patch)
	if err != nil || len(members) == 0 {
		return p, err == nil
	}
	if len(members) > 1 || members[0].Name != "metadata" {
		return p, false
	}
	metadata, err := rawjson.Split(members[0].Value)
	for _, m := range metadata {
		var text string
		if err == nil {
			text, err = rawjson.String(m.Value)
		}
		switch {
		case err != nil || text == "":
			return p, false
		case m.Name == "uid":
			p.UID = text
		case m.Name == "resourceVersion":
			p.Version, err = listwatch.ParseVersion(text)
			if p.Version == 0 {
				return p, false
			}
		default:
			return p, false
		}
	}
	return p, err == nil
}
