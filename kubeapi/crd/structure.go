package crd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/listwatch/listwatch/kubeapi/schema"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// objectMembers are the members that every object has, whatever its schema says.
var objectMembers = []string{"apiVersion", "kind", "metadata"}

// checkTypes returns an error if s is not of type object, or if a schema in it has an unknown type.
func checkTypes(s *structural.Structural) error {
	if s.Type != "object" {
		return fmt.Errorf("openAPIV3Schema.type: got %q, must be \"object\"", s.Type)
	}
	known := []string{"", "object", "array", "string", "integer", "number", "boolean"}
	unknown := ""
	v := structural.Visitor{Structural: func(s *structural.Structural) bool {
		if !slices.Contains(known, s.Type) {
			unknown = s.Type
		}
		return false
	}}
	v.Visit(s)
	if unknown != "" {
		return fmt.Errorf("openAPIV3Schema: the type %q does not exist; must be one of %q", unknown, known[1:])
	}
	return nil
}

// rootType returns the type of the objects of d.
func (d *Definition) rootType(s *structural.Structural) *schema.Type {
	t := d.objectType("", s, false)
	for _, name := range objectMembers {
		delete(t.Fields, name) // the Handler adds its own
	}
	return t
}

// field returns the type of the value at path. s is the schema of the value. preserve is true if
// the object or the array that contains the value preserves unknown fields.
func (d *Definition) field(path string, s *structural.Structural, preserve bool) schema.Field {
	d.ignoreRules(path, s)
	switch {
	case s.XIntOrString:
		return schema.Field{Scalar: schema.IntOrString, Default: s.Default.Object}
	case s.Type == "object":
		return schema.Field{Type: d.objectType(path, s, preserve)}
	case s.Type == "array":
		return d.listField(path, s, preserve)
	}
	return schema.Field{Scalar: scalarOf(s), Default: s.Default.Object}
}

// ignoreRules adds to d.Ignored the rules of s that have no effect. The entries contain path.
func (d *Definition) ignoreRules(path string, s *structural.Structural) {
	if len(s.XValidations) > 0 {
		d.ignore("%s: the CEL rules of x-kubernetes-validations are not enforced", path)
	}
	if s.XEmbeddedResource {
		d.ignore("%s: apiVersion, kind and metadata of the embedded resource are not validated", path)
	}
	if s.Default.Object != nil {
		d.ignore("%s: the default is not filled in", path)
	}
}

func (d *Definition) objectType(path string, s *structural.Structural, preserve bool) *schema.Type {
	if path == "" {
		d.ignoreRules("the object", s)
	}
	t := &schema.Type{Fields: map[string]schema.Field{}, Atomic: s.XMapType != nil && *s.XMapType == "atomic"}
	preserve = s.XPreserveUnknownFields || preserve && len(s.Properties) == 0 && s.AdditionalProperties == nil
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		t.Fields[name] = d.field(join(path, name), &property, preserve)
	}
	switch more := s.AdditionalProperties; {
	case more != nil && more.Structural != nil:
		f := d.field(join(path, "*"), more.Structural, preserve)
		t.AdditionalProperties = &f
	case preserve || more != nil && more.Bool:
		t.AdditionalProperties = &schema.Field{}
	}
	if s.XEmbeddedResource {
		t.Fields["apiVersion"] = schema.Field{Scalar: schema.String}
		t.Fields["kind"] = schema.Field{Scalar: schema.String}
		t.Fields["metadata"] = schema.Field{Type: schema.Kubernetes("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")}
	}
	return t
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d *Definition) listField(path string, s *structural.Structural, preserve bool) schema.Field {
	f := schema.Field{List: true, Keys: s.XListMapKeys, Set: s.XListType != nil && *s.XListType == "set"}
	if s.Items == nil {
		return f
	}
	element := d.field(path+"[*]", s.Items, preserve || s.XPreserveUnknownFields)
	if element.List {
		f.Elements = &element
	} else {
		f.Type, f.Scalar = element.Type, element.Scalar
	}
	return f
}

func scalarOf(s *structural.Structural) schema.Scalar {
	format := ""
	if s.ValueValidation != nil {
		format = s.ValueValidation.Format
	}
	switch {
	case s.Type == "string" && (format == "date-time" || format == "byte"), s.Type == "integer" && format == "int32":
		return schema.Scalar(format)
	}
	return schema.Scalar(s.Type)
}
