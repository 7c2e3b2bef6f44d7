// Package openapi writes the parts of OpenAPI documents that depend on the types of fields only,
// and serves the documents.
package openapi

import (
	"encoding/json"
	"maps"

	"github.com/listwatch/listwatch/kubeapi/schema"
)

// A Map is a JSON object under construction. OpenAPI documents have too many different parts to
// declare a type for each.
type Map map[string]any

// The prefixes of references to schemas in the versions 2 and 3 of OpenAPI.
const (
	V2References = "#/definitions/"
	V3References = "#/components/schemas/"
)

// Definitions holds the schemas of an OpenAPI document by name.
type Definitions struct {
	// References is the prefix of references to the schemas.
	References string
	All        Map
}

// Kind returns the schema of the objects of type t. In version 3, it is a copy of t.OpenAPI, if
// there is one, with the schemas of the given members, which every object has.
func (d Definitions) Kind(t *schema.Type, members map[string]schema.Field) Map {
	s := Map{}
	if t.OpenAPI == nil || d.References == V2References || json.Unmarshal(t.OpenAPI, &s) != nil {
		return d.object(t)
	}
	properties, _ := s["properties"].(map[string]any)
	all := Map{}
	maps.Copy(all, properties)
	for name := range members {
		all[name] = d.field(t.Fields[name])
	}
	s["properties"] = all
	return s
}

// Describe sets the descriptions of properties of a schema.
func Describe(s Map, descriptions map[string]string) {
	properties := s["properties"].(Map)
	for name, description := range descriptions {
		if p, ok := properties[name].(Map); ok {
			p["description"] = description
		}
	}
}

// Reference returns the schema of a value of type t, which is a reference if t has a name.
func (d Definitions) Reference(t *schema.Type) Map {
	if t.Name == "" {
		return d.object(t)
	}
	if _, there := d.All[t.Name]; !there {
		d.All[t.Name] = Map{} // avoids an endless recursion if t contains itself
		d.All[t.Name] = d.object(t)
	}
	return Map{"$ref": d.References + t.Name}
}

func (d Definitions) object(t *schema.Type) Map {
	s := Map{"type": "object"}
	if t.Atomic {
		s["x-kubernetes-map-type"] = "atomic"
	}
	if t.AdditionalProperties != nil {
		s["additionalProperties"] = d.field(*t.AdditionalProperties)
	} else {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	if len(t.Fields) > 0 {
		properties := Map{}
		for name, f := range t.Fields {
			properties[name] = d.field(f)
		}
		s["properties"] = properties
	}
	return s
}

// field returns the schema of a field. The caller may add members to the schema, such as
// a description, even if the schema refers to a named type.
func (d Definitions) field(f schema.Field) Map {
	s := d.scalar(f.Scalar)
	if f.Type != nil {
		s = d.Reference(f.Type)
	}
	if f.Elements != nil {
		s = d.field(*f.Elements)
	}
	if f.List {
		s = Map{"type": "array", "items": s}
	}
	if s["$ref"] != nil && d.References != V2References {
		// In OpenAPI 3.0 a reference must not have siblings; Kubernetes clients understand allOf.
		s = Map{"allOf": []Map{s}}
	}
	if strategy := f.Strategy(); strategy != "" {
		s["x-kubernetes-patch-strategy"] = strategy
	}
	if f.MergeKey != "" {
		s["x-kubernetes-patch-merge-key"] = f.MergeKey
	}
	maps.Copy(s, f.ListExtensions())
	if f.Default != nil {
		s["default"] = f.Default
	}
	return s
}

func (d Definitions) scalar(s schema.Scalar) Map {
	oneOf := func(types ...schema.Scalar) Map {
		if d.References == V2References {
			// OpenAPI version 2 has no oneOf, so the type is string. If s is int-or-string, the
			// format shows it.
			return Map{"type": "string"}
		}
		var all []Map
		for _, t := range types {
			all = append(all, Map{"type": string(t)})
		}
		return Map{"oneOf": all}
	}
	switch s {
	case "":
		// The schema is not empty, because kubectl explain treats an empty one as missing.
		return Map{"x-kubernetes-preserve-unknown-fields": true}
	case schema.Time, schema.Bytes:
		return Map{"type": "string", "format": string(s)}
	case schema.MicroTime:
		return Map{"type": "string", "format": string(schema.Time)}
	case schema.Int32:
		return Map{"type": string(schema.Integer), "format": string(s)}
	case schema.IntOrString:
		either := oneOf(schema.Integer, schema.String)
		either["format"] = string(s)
		return either
	case schema.Quantity:
		return oneOf(schema.String, schema.Number)
	}
	return Map{"type": string(s)}
}
