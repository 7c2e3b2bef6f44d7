package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// builtIn returns the types of the built-in kinds. The shared scheme of client-go may also contain
// types of the program under test.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	return s
})

// objects converts, creates and describes the objects of a resource for the plugins. As in
// kube-apiserver, objects of built-in kinds have Go types, so that webhooks and CEL see all of
// their members.
type objects struct {
	runtime.ObjectConvertor
	resource *kubeapi.Resource
	// part is the kind of the objects of a subresource. If it is empty, they have the kind of the
	// resource.
	part    schema.GroupVersionKind
	cluster Cluster
}

func (o objects) kind() schema.GroupVersionKind {
	if !o.part.Empty() {
		return o.part
	}
	return schema.GroupVersionKind{Group: o.resource.Group, Version: o.resource.Version, Kind: o.resource.Kind}
}

// isScale reports whether the plugins see the scales of the objects.
func (o objects) isScale() bool { return o.part.Kind == "Scale" }

// decode returns an object as the plugins see it.
func (o objects) decode(data []byte) (runtime.Object, error) {
	if o.isScale() {
		var err error
		if data, err = o.resource.ScaleOf(data); err != nil {
			return nil, err
		}
	}
	return decode(data, o.kind())
}

func (o objects) plural() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: o.resource.Group, Version: o.resource.Version, Resource: o.resource.Plural,
	}
}

// decode decodes an object of the given kind.
func decode(data []byte, kind schema.GroupVersionKind) (runtime.Object, error) {
	if !builtIn().Recognizes(kind) {
		u := &unstructured.Unstructured{}
		err := utiljson.Unmarshal(data, &u.Object)
		return u, err
	}
	typed, err := builtIn().New(kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, typed); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(kind)
	return typed, nil
}

// encode is the opposite of decode.
func encode(o runtime.Object) ([]byte, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return json.Marshal(u.Object)
	}
	return json.Marshal(o)
}

func (o objects) GetObjectCreater() runtime.ObjectCreater { return o }

func (o objects) GetObjectTyper() runtime.ObjectTyper { return builtIn() }

func (o objects) GetObjectDefaulter() runtime.ObjectDefaulter { return o }

func (o objects) GetObjectConvertor() runtime.ObjectConvertor { return o }

func (o objects) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return o }

// New implements [runtime.ObjectCreater].
func (o objects) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if !builtIn().Recognizes(kind) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u, nil
	}
	return builtIn().New(kind)
}

// Default implements [runtime.ObjectDefaulter]. The kind of the object may be another version of
// the resource. An object of a subresource has no defaults.
func (o objects) Default(object runtime.Object) {
	kind := object.GetObjectKind().GroupVersionKind()
	r, found := find(o.cluster, kind)
	if !found || r.Complete == nil {
		return
	}
	before, err := encode(object)
	if err != nil {
		return
	}
	data, err := r.Complete(before, false)
	if err != nil || bytes.Equal(data, before) {
		return // an invalid object will be refused
	}
	if completed, err := decode(data, kind); err == nil {
		_ = o.Convert(completed, object, nil) // they have the same type
	}
}

// Convert implements [runtime.ObjectConvertor]. A plugin sets out to in, or requests in in another
// version of a custom resource.
func (o objects) Convert(in, out, _ any) error {
	from, isCustom := in.(*unstructured.Unstructured)
	to, _ := out.(*unstructured.Unstructured)
	if isCustom && to != nil && o.resource.Convert != nil && from.GetAPIVersion() != to.GetAPIVersion() {
		data, err := encode(from)
		if err != nil {
			return err
		}
		if data, err = o.resource.Convert(context.Background(), data, to.GetAPIVersion()); err != nil {
			return apistatus.WithoutCode(err)
		}
		to.Object = nil
		return utiljson.Unmarshal(data, &to.Object)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in).Elem())
	return nil
}

// ConvertToVersion implements [runtime.ObjectConvertor]. It gives the result of a policy its type.
func (o objects) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	data, err := encode(in)
	if err != nil {
		return nil, err
	}
	return decode(data, in.GetObjectKind().GroupVersionKind())
}

// EquivalentResourcesFor implements [runtime.EquivalentResourceMapper].
func (o objects) EquivalentResourcesFor(schema.GroupVersionResource, string) (all []schema.GroupVersionResource) {
	versions := o.cluster.Find(func(r *kubeapi.Resource) bool {
		return r.Plural == o.resource.Plural && r.Group == o.resource.Group
	})
	for _, r := range versions {
		all = append(all, objects{resource: &r}.plural())
	}
	return all
}

// KindFor implements [runtime.EquivalentResourceMapper]. The kind of a subresource has one version.
func (o objects) KindFor(r schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	if !o.part.Empty() {
		return o.part
	}
	return r.GroupVersion().WithKind(o.resource.Kind)
}
