// Package apply implements server-side apply and keeps metadata.managedFields, which name the
// manager of each field, with Kubernetes' own code.
//
// Updating managedFields takes longer than the rest of a write, so usually an object has them only
// from its first apply on. The first apply then attributes all existing fields to the manager
// "before-first-apply", as in Kubernetes for objects that are older than server-side apply. It does
// not attribute what a delete has added, because deletes have no manager in Kubernetes.
package apply

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Manager applies configurations to the objects of one kind. It is safe for concurrent use.
type Manager struct {
	kind   kubeschema.GroupVersionKind
	types  managedfields.TypeConverter
	fields map[string]*managedfields.FieldManager // by subresource
}

// Versions are the versions of a kind that managers may apply.
type Versions struct {
	// Types has the schema of each version, by its name. If a schema is nil, the types of fields
	// are deduced from their values, and lists are replaced as a whole.
	Types map[string]*schema.Type
	// Convert converts objects between the versions. It may be nil if there is only one version.
	Convert Converter
	// Complete is [kubeapi.Resource.Complete]. It may be nil.
	Complete func(object []byte, applied bool) ([]byte, error)
	// Custom selects what happens to managers of a version that is not in Types, for example
	// because the kind no longer has it. If true, they make each apply fail, as for custom
	// resources in Kubernetes. If false, an apply drops them.
	Custom bool
}

// A Converter returns an object, which is JSON, in the version with the given apiVersion.
type Converter func(ctx context.Context, object []byte, apiVersion string) ([]byte, error)

// New returns the Manager of a kind in one of its versions.
func New(kind kubeschema.GroupVersionKind, versions Versions) (*Manager, error) {
	types, err := NewTypeConverter(versions.Types, kind)
	if err != nil {
		return nil, err
	}
	m := &Manager{kind: kind, types: types, fields: map[string]*managedfields.FieldManager{}}
	o := objects{kind, versions}
	for _, subresource := range []string{"", "status", "scale"} {
		var reset map[fieldpath.APIVersion]fieldpath.Filter
		if subresource == "status" { // an apply to the status changes no other field
			reset = map[fieldpath.APIVersion]fieldpath.Filter{
				fieldpath.APIVersion(kind.GroupVersion().String()): fieldpath.NewIncludeMatcherFilter(
					fieldpath.MakePrefixMatcherOrDie("status")),
			}
		}
		m.fields[subresource], err = managedfields.NewDefaultCRDFieldManager(types, o, o, o, kind,
			kind.GroupVersion(), subresource, reset)
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// IsTracked reports whether an object has managedFields. object is compact JSON.
func IsTracked(object []byte) bool {
	return len(rawjson.Lookup(object, "metadata", "managedFields")) > len("[]")
}

// Manages reports whether object has a manager of the field at path. object is compact JSON.
func Manages(object []byte, path ...string) bool {
	if !IsTracked(object) {
		return false
	}
	var entries []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(rawjson.Lookup(object, "metadata", "managedFields"), &entries); err != nil {
		return false
	}
	field := make(fieldpath.Path, len(path))
	for i, name := range path {
		field[i] = fieldpath.PathElement{FieldName: &name}
	}
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		var fields fieldpath.Set
		return e.FieldsV1 != nil && fields.FromJSON(e.FieldsV1.GetRawReader()) == nil && fields.Has(field)
	})
}

// Update returns the object in next with new managedFields. In them, the given manager owns the
// changes that a write other than an apply has made since old. No other byte changes. old may be
// nil. Both objects are compact JSON.
func (m *Manager) Update(subresource string, old, next []byte, manager string) ([]byte, error) {
	live, err := m.decode(old)
	if err != nil {
		return nil, err
	}
	changed, err := m.decode(next)
	if err != nil {
		return nil, err
	}
	result := m.fields[subresource].UpdateNoErrors(live, changed, manager)
	return spliceManagedFields(next, result.(*unstructured.Unstructured))
}

// Apply applies patch, a configuration from the given manager, to old and returns the result, or
// old itself if nothing changes. Members that do not change keep their position and spelling. A
// list that changes is encoded again as a whole, but its 64-bit integers remain exact. An apply to
// the status changes only the status and the managedFields of an object. old may be nil. A conflict
// with other managers is an error of code Conflict with a cause for each field, unless force is
// set.
func (m *Manager) Apply(subresource string, old, patch []byte, manager string, force bool) ([]byte, error) {
	stored, err := m.decode(old)
	if err != nil {
		return nil, err
	}
	live := stored
	if old != nil && !IsTracked(old) {
		// The FieldManager of a subresource would attribute only the fields of the subresource.
		if live, err = m.attribute(stored); err != nil {
			return nil, err
		}
	}
	before := live.DeepCopy()
	config := &unstructured.Unstructured{}
	if err := json.Unmarshal(patch, &config.Object); err != nil {
		return nil, invalid(err)
	}
	applied, err := m.fields[subresource].Apply(live, config, manager, force)
	if err != nil {
		return nil, m.refusal(config, err)
	}
	result := applied.(*unstructured.Unstructured)
	if subresource == "status" && old != nil {
		result = withStatus(before, result)
	}
	if old != nil && equalExceptTimes(before, result) {
		return old, nil
	}
	return rebase(old, stored, result)
}

// attribute returns a copy of u, which has no managedFields, whose fields belong to the manager
// before-first-apply.
func (m *Manager) attribute(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	empty, err := m.decode(nil)
	if err != nil {
		return nil, err
	}
	owned := u.DeepCopy()
	if owned.GetDeletionTimestamp() != nil {
		owned.SetDeletionTimestamp(nil)
		owned.SetDeletionGracePeriodSeconds(nil)
		owned.SetFinalizers(slices.DeleteFunc(owned.GetFinalizers(), func(name string) bool {
			return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
		}))
	}
	owned = m.fields[""].UpdateNoErrors(empty, owned, "before-first-apply").(*unstructured.Unstructured)
	u = u.DeepCopy()
	u.SetManagedFields(owned.GetManagedFields())
	return u, nil
}

// rebase applies the differences between the objects before and after to the JSON in old, and
// returns the result. before was decoded from old. If old is nil, rebase returns the JSON of after.
func rebase(old []byte, before, after *unstructured.Unstructured) ([]byte, error) {
	next, err := rawjson.Encode(after.Object)
	if err != nil || old == nil {
		return next, err
	}
	decoded, err := rawjson.Encode(before.Object)
	if err != nil {
		return nil, err
	}
	return rawjson.Rebase(old, decoded, next)
}

// withStatus returns a copy of u with the status and the managedFields of other.
func withStatus(u, other *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	delete(u.Object, "status")
	if status, found := other.Object["status"]; found {
		u.Object["status"] = status
	}
	u.SetManagedFields(other.GetManagedFields())
	return u
}

// refusal gives a status to err, the error of an apply of config.
func (m *Manager) refusal(config *unstructured.Unstructured, err error) error {
	if converted := apistatus.Convert(err); converted != err {
		return converted
	}
	if _, typeErr := m.types.ObjectToTyped(config); typeErr != nil {
		return invalid(err)
	}
	// The configuration is valid, but the stored object cannot be merged with it.
	return &listwatch.Error{Status: http.StatusInternalServerError, Message: err.Error()}
}

func invalid(err error) error { return &listwatch.Error{Code: listwatch.Invalid, Message: err.Error()} }

// decode decodes the object in data. If data is nil, it returns an object with only its type.
func (m *Manager) decode(data []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if data == nil {
		u.SetGroupVersionKind(m.kind)
		return u, nil
	}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the object is invalid", Err: err}
	}
	u.SetGroupVersionKind(m.kind)
	return u, nil
}

// spliceManagedFields returns object with the managedFields of u.
func spliceManagedFields(object []byte, u *unstructured.Unstructured) ([]byte, error) {
	fields, found, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	if err != nil || !found {
		fields = []any{}
	}
	value, err := rawjson.Encode(fields)
	if err != nil {
		return nil, err
	}
	return jsonvalue.SetMetadata(object, "managedFields", value), nil
}

// IsUnchanged reports whether next, an object to be stored, is equal to old, except for its version
// and the times of its managedFields. As in Kubernetes, a write that would change only these times
// writes nothing.
func IsUnchanged(old, next []byte) bool {
	var objects [2]unstructured.Unstructured
	for i, data := range [][]byte{old, next} {
		if err := json.Unmarshal(data, &objects[i].Object); err != nil {
			return false
		}
		objects[i].SetResourceVersion("")
	}
	return equalExceptTimes(&objects[0], &objects[1])
}

// equalExceptTimes reports whether a and b are equal except for the times of their managedFields.
func equalExceptTimes(a, b *unstructured.Unstructured) bool {
	withoutTimes := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = u.DeepCopy()
		fields := u.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		u.SetManagedFields(fields)
		return u
	}
	return equality.Semantic.DeepEqual(withoutTimes(a).Object, withoutTimes(b).Object)
}

// objects creates the objects of one kind, and converts them between its versions.
type objects struct {
	kind kubeschema.GroupVersionKind
	Versions
}

// New implements [runtime.ObjectCreater].
func (o objects) New(kind kubeschema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// Default implements [runtime.ObjectDefaulter]. Kubernetes' code calls it with the result of an
// apply that changes a value.
func (o objects) Default(object runtime.Object) {
	if o.Complete == nil {
		return
	}
	u := object.(*unstructured.Unstructured)
	data, err := rawjson.Encode(u.Object)
	if err == nil {
		data, err = o.Complete(data, true)
	}
	var completed map[string]any
	if err == nil && json.Unmarshal(data, &completed) == nil {
		u.Object = completed
	}
	// Otherwise the object is invalid, and will be rejected.
}

// Convert implements [runtime.ObjectConvertor]. It is never called.
func (o objects) Convert(in, out, context any) error {
	return fmt.Errorf("convert %T to %T: not supported", in, out)
}

// ConvertToVersion implements [runtime.ObjectConvertor]. Kubernetes' code drops the managers of a
// version for which it returns an error that the version is not registered.
func (o objects) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	to, ok := target.KindForGroupVersionKinds([]kubeschema.GroupVersionKind{o.kind})
	if _, known := o.Types[to.Version]; !ok || !known {
		if ok && o.Custom {
			return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", to.GroupVersion())
		}
		return nil, runtime.NewNotRegisteredGVKErrForTarget("listwatch", o.kind, target)
	}
	u := in.(*unstructured.Unstructured)
	if u.GroupVersionKind() == to || o.Versions.Convert == nil {
		return in, nil
	}
	data, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	// This method has no context. A conversion has limits of its own.
	if data, err = o.Versions.Convert(context.Background(), data, to.GroupVersion().String()); err != nil {
		return nil, apistatus.WithoutCode(err)
	}
	converted := &unstructured.Unstructured{}
	return converted, json.Unmarshal(data, &converted.Object)
}

// ConvertFieldLabel implements [runtime.ObjectConvertor]. It is never called.
func (o objects) ConvertFieldLabel(_ kubeschema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
