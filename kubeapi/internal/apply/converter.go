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
	d := definitions{}
	for version, t := range types {
		if t == nil {
			return managedfields.NewDeducedTypeConverter(), nil
		}
		root := d.object(t)
		root.Extensions = spec.Extensions{"x-kubernetes-group-version-kind": []any{
			map[string]any{"group": kind.Group, "version": version, "kind": kind.Kind},
		}}
		d["."+version+"."+kind.Kind] = root // no named type starts with a dot
	}
	return managedfields.NewTypeConverter(d, true)
}

// definitions holds the named types of a schema in the form of kube-openapi.
type definitions map[string]*spec.Schema

func (d definitions) reference(t *schema.Type) *spec.Schema {
	if t.Name == "" {
		return d.object(t)
	}
	if d[t.Name] == nil {
		d[t.Name] = &spec.Schema{} // avoids an endless recursion if t contains itself
		*d[t.Name] = *d.object(t)
	}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef("#/definitions/" + t.Name)}}
}

func (d definitions) object(t *schema.Type) *spec.Schema {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	if t.Atomic {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
	if t.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Schema: d.field(*t.AdditionalProperties)}
	}
	for name, f := range t.Fields {
		s.SetProperty(name, *d.field(f))
	}
	return s
}

func (d definitions) field(f schema.Field) *spec.Schema {
	s := scalar(f.Scalar)
	if f.Type != nil {
		s = d.reference(f.Type)
	}
	if f.Elements != nil {
		s = d.field(*f.Elements)
	}
	if f.List {
		s = &spec.Schema{SchemaProps: spec.SchemaProps{
			Type: spec.StringOrArray{"array"}, Items: &spec.SchemaOrArray{Schema: s},
		}}
	}
	for name, value := range f.ListExtensions() {
		s.AddExtension(name, value)
	}
	s.Default = f.Default
	return s
}

// scalar returns the schema of a scalar. Values that may have several types are untyped.
func scalar(s schema.Scalar) *spec.Schema {
	word := map[schema.Scalar]string{
		schema.String: "string", schema.Time: "string", schema.MicroTime: "string", schema.Bytes: "string",
		schema.Integer: "integer", schema.Int32: "integer", schema.Number: "number", schema.Boolean: "boolean",
	}[s]
	if word == "" {
		return &spec.Schema{}
	}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{word}}}
}
