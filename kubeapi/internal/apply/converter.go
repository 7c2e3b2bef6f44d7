package apply

import (
	"github.com/listwatch/listwatch/kubeapi/schema"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// NewTypeConverter returns the converter of the objects of a kind. types has the schema of each
// version. If the schema of a version is nil, the lists of all versions are atomic. Fields that the
// schema does not have are preserved.
func NewTypeConverter(
	types map[string]*schema.Type, kind kubeschema.GroupVersionKind,
) (managedfields.TypeConverter, error) {
	d := Definitions{}
	for version, t := range types {
		if t == nil {
			return managedfields.NewDeducedTypeConverter(), nil
		}
		root := d.Object(t)
		root.Extensions = spec.Extensions{"x-kubernetes-group-version-kind": []any{
			map[string]any{"group": kind.Group, "version": version, "kind": kind.Kind},
		}}
		d["."+version+"."+kind.Kind] = root // no named type starts with a dot
	}
	return managedfields.NewTypeConverter(d, true)
}
