package apply

import (
	"slices"

	"github.com/listwatch/listwatch/kubeapi/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions holds the named types of schemas in the form of kube-openapi, in which Kubernetes'
// libraries read schemas. A type may contain itself, so references to named types stay references.
type Definitions map[string]*spec.Schema

// Prefix is the beginning of the references to the types in [Definitions], before their names.
const Prefix = "#/definitions/"

// Reference returns the schema of the values of type t, which is a reference if t has a name. It
// adds the named types that it refers to.
func (d Definitions) Reference(t *schema.Type) *spec.Schema {
	if t.Name == "" {
		return d.Object(t)
	}
	if d[t.Name] == nil {
		d[t.Name] = &spec.Schema{} // avoids an endless recursion if t contains itself
		*d[t.Name] = *d.Object(t)
	}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(Prefix + t.Name)}}
}

// Object returns the schema of the objects of type t. It is never a reference itself.
func (d Definitions) Object(t *schema.Type) *spec.Schema {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	if t.Atomic {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
	if t.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: d.field(*t.AdditionalProperties)}
	}
	for name, f := range t.Fields {
		s.SetProperty(name, *d.field(f))
	}
	return s
}

func (d Definitions) field(f schema.Field) *spec.Schema {
	s := scalar(f.Scalar)
	if f.Type != nil {
		s = d.Reference(f.Type)
	}
	if f.Elements != nil {
		s = d.field(*f.Elements)
	}
	if f.List {
		s = spec.ArrayProperty(s)
	}
	for name, value := range f.ListExtensions() {
		s.AddExtension(name, value)
	}
	s.Default = f.Default
	return s
}

// scalar returns the schema of a scalar. Values that may have several types have no type.
func scalar(s schema.Scalar) *spec.Schema {
	switch {
	case s == schema.Time || s == schema.MicroTime:
		return spec.DateTimeProperty()
	case s == schema.Bytes:
		return spec.StrFmtProperty("byte")
	case s == schema.Int32:
		return spec.Int32Property()
	case s == schema.IntOrString:
		return &spec.Schema{SchemaProps: spec.SchemaProps{Format: "int-or-string"}}
	case slices.Contains(plainScalars, s):
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{string(s)}}}
	}
	return &spec.Schema{}
}

// plainScalars have the same names in OpenAPI.
var plainScalars = []schema.Scalar{schema.String, schema.Boolean, schema.Integer, schema.Number}
