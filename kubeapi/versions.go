package kubeapi

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/internal/convert"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/store"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A Converter returns an object in another version of its kind. object is compact JSON, and
// apiVersion the apiVersion of the result. The metadata of the result may differ only in labels and
// annotations. A Converter must be safe for concurrent use.
type Converter func(ctx context.Context, object []byte, apiVersion string) ([]byte, error)

// SetAPIVersion is the [Converter] of kinds whose versions differ only in their names. An object
// without an apiVersion stays as it is.
func SetAPIVersion(_ context.Context, object []byte, apiVersion string) ([]byte, error) {
	old, err := rawjson.Find(object, "apiVersion")
	if err != nil || old.Empty() || rawjson.IsString(old.Of(object), apiVersion) {
		return object, err
	}
	return slices.Concat(object[:old.Start], rawjson.AppendString(nil, apiVersion), object[old.End:]), nil
}

// InVersion returns a view of stored that shows all objects in the version of spec. Objects that
// are written to the view are stored in the version of stored. spec has the rules for writes to the
// view. The view has the quotas and the TTL of stored. The fields of spec must also be fields of
// stored.
//
// If read and write are nil, the versions differ only in their names. Otherwise read is called for
// each stored object that is read, and write for each object to be stored, also if the object has
// the right version. Field selectors then apply to the objects as they are stored, and reads with a
// projection are refused. A view cannot be a part of a union.
func InVersion(stored *store.Collection, spec store.CollectionSpec, read, write Converter) *store.Collection {
	spec.TTL, spec.MaxObjects, spec.MaxBytes = stored.Spec().TTL, stored.Spec().MaxObjects, stored.Spec().MaxBytes
	v := &versionView{
		Backend: stored.Backend(), stored: stored.Spec(), spec: spec.WithDefaults(), toView: read, toStored: write,
	}
	if v.whole = read != nil; !v.whole {
		v.toView, v.toStored = SetAPIVersion, SetAPIVersion
	}
	return store.New(spec, v)
}

// A versionView is the backend of a view of InVersion. It has no method Unwrap, because the
// properties of the stored collection do not hold for the view.
type versionView struct {
	store.Backend // of the stored collection
	stored, spec  store.CollectionSpec

	toView, toStored Converter
	whole            bool // the Converters need whole objects
}

// Describe implements [listwatch.Describer].
func (v *versionView) Describe() listwatch.Description {
	return v.spec.Description(listwatch.Describe(v.Backend).Epoch)
}

// Stats returns the sizes of the stored collection.
func (v *versionView) Stats() listwatch.Stats {
	if b, ok := listwatch.As[interface{ Stats() listwatch.Stats }](v.Backend); ok {
		return b.Stats()
	}
	return listwatch.Stats{}
}

// List implements [listwatch.Source].
func (v *versionView) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	if err := v.check(q); err != nil {
		return listwatch.Page{}, err
	}
	return v.conversion().List(ctx, v.Backend, q)
}

// check returns an error if the view does not support q.
func (v *versionView) check(q listwatch.Query) error {
	if v.whole && !q.Projection.Empty() {
		return &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: fmt.Sprintf("fields: not supported for %s, whose objects are converted", v.spec.APIVersion),
		}
	}
	return q.Fields.Check(v.spec.Fields)
}

// Get implements [store.Backend].
func (v *versionView) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	o, err := v.Backend.Get(ctx, key)
	if err != nil || o == nil {
		return o, err
	}
	return v.read(ctx, o)
}

// Watch implements [listwatch.Source].
func (v *versionView) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := v.check(q); err != nil {
		return nil, err
	}
	return v.conversion().Watch(ctx, v.Backend, q)
}

// conversion changes only the apiVersion of what the Backend writes itself: that has only metadata,
// so toView could fail.
func (v *versionView) conversion() *convert.Conversion {
	own := func(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error) {
		data, err := SetAPIVersion(ctx, o.Data, v.spec.APIVersion)
		changed := *o
		changed.Data = data
		return &changed, err
	}
	return &convert.Conversion{Object: v.read, Own: own, Blocks: v.whole}
}

// Commit implements [store.Backend].
func (v *versionView) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if c.New != nil {
		var err error
		if c.New, err = v.draft(ctx, c.New); err != nil {
			return nil, err
		}
	}
	o, err := v.Backend.Commit(ctx, c)
	if err != nil {
		return nil, err
	}
	return v.read(ctx, o)
}

// Preview implements the optional method of [store.Backend]. As in Kubernetes, a dry run fails if a
// conversion fails.
func (v *versionView) Preview(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error) {
	if !v.whole {
		return o, nil
	}
	stored := *o
	var err error
	if stored.Data, err = v.toStored(ctx, o.Data, v.stored.APIVersion); err != nil {
		return nil, err
	}
	return v.read(ctx, &stored)
}

// UnchangedSince implements the optional method of [store.Backend].
func (v *versionView) UnchangedSince(o *listwatch.Object, at listwatch.Version) bool {
	b, ok := listwatch.As[interface {
		UnchangedSince(o *listwatch.Object, v listwatch.Version) bool
	}](v.Backend)
	return ok && b.UnchangedSince(o, at)
}

// Renew implements [store.Renewer].
func (v *versionView) Renew(ctx context.Context, o *listwatch.Object) error {
	b, ok := listwatch.As[store.Renewer](v.Backend)
	if !ok {
		return &listwatch.Error{Code: listwatch.Unsupported, Message: "the backend cannot renew objects"}
	}
	return b.Renew(ctx, o)
}

// read returns a stored object in the version of the view.
func (v *versionView) read(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error) {
	data, err := v.toView(ctx, o.Data, v.spec.APIVersion)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(data, o.Data) {
		return o, nil
	}
	converted := &listwatch.Object{
		Key: o.Key, Version: o.Version, Labels: o.Labels, Fields: v.spec.ReadFields(data), Data: data,
	}
	if v.whole {
		m, err := rawjson.ReadMetadata(data, newLabels)
		if err != nil {
			return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the converted object is invalid", Err: err}
		}
		converted.Labels = m.Labels
	}
	return converted, nil
}

func newLabels() map[string]string { return nil }

// draft returns d, an object in the version of the view, in the version of the stored objects.
func (v *versionView) draft(ctx context.Context, d *store.Draft) (*store.Draft, error) {
	data, err := v.toStored(ctx, d.Seal(1).Data, v.stored.APIVersion)
	if err != nil {
		return nil, err
	}
	m, err := rawjson.ReadMetadata(data, newLabels)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the converted object is invalid", Err: err}
	}
	metadata, _ := rawjson.Find(data, "metadata") // ReadMetadata has found it
	number, err := rawjson.Find(metadata.Of(data), "resourceVersion")
	if err != nil || number.Empty() {
		return nil, &listwatch.Error{
			Code: listwatch.Corrupt, Message: "the converted object has no resourceVersion", Err: err,
		}
	}
	number = number.Shift(metadata.Start)
	return &store.Draft{
		Key: d.Key, Labels: m.Labels, Fields: v.stored.ReadFields(data), TTL: d.TTL,
		Before: data[:number.Start:number.Start], After: data[number.End:],
	}, nil
}

// newApplier returns the Manager of server-side apply for r and its other versions.
func newApplier(r Resource) (*apply.Manager, error) {
	versions := apply.Versions{
		Types: map[string]*schema.Type{r.Version: r.Schema}, Convert: apply.Converter(r.Convert), Custom: r.Custom,
		Complete: r.Complete,
	}
	if r.Convert != nil {
		maps.Copy(versions.Types, r.OtherVersions)
	}
	return apply.New(kubeschema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}, versions)
}

// isView reports whether c is a result of InVersion.
func isView(c *store.Collection) bool {
	if c == nil {
		return false
	}
	_, ok := c.Backend().(*versionView)
	return ok
}
