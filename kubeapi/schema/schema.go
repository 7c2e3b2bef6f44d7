// Package schema describes the fields of JSON objects with the properties that OpenAPI, strategic
// merge patches, server-side apply and type checks need. [Type.Check] checks the known fields of an
// object, which may have other fields as well.
//
// A [Type] is declared in Go,
//
//	&schema.Type{Fields: map[string]schema.Field{
//		"spec": {Type: &schema.Type{Fields: map[string]schema.Field{
//			"parts": {List: true, Merge: true, MergeKey: "name"},
//		}}},
//	}}
//
// or comes from [Kubernetes], which has the types of the resources that every cluster has.
package schema

// A Type describes a JSON object. It must not be modified once it is in use. A nil Type
// describes nothing: every value is valid.
type Type struct {
	// Name is the name of the type in OpenAPI, such as "io.k8s.api.core.v1.Container".
	// Types with the same name must be equal. If empty, OpenAPI repeats the type wherever
	// it is used, so such a type must not contain itself.
	Name string
	// Fields are the known members, by name.
	Fields map[string]Field
	// AdditionalProperties describes the members that are not in Fields, for objects such
	// as labels, whose names the user chooses. If nil, those members may have any value.
	AdditionalProperties *Field
	// OpenAPI is the JSON of the OpenAPI 3 schema from which Fields were made, if there is one. It
	// is published instead of a schema made from Fields, because it contains more, such as the
	// texts that kubectl explain shows.
	OpenAPI []byte
	// Atomic is true if a server-side apply replaces the object as a whole
	// (x-kubernetes-map-type "atomic"). Otherwise each member has its own managers.
	Atomic bool
}

// A Field describes a member of an object.
type Field struct {
	// Type is the type of an object: of the value or, if List is true, of each element of the
	// value.
	Type *Type
	// Scalar is the type of a value or element that is not an object. If Scalar is empty and Type
	// is nil, the value or element may be anything.
	Scalar Scalar
	// List is true if the value is a list.
	List bool
	// Elements describes the elements of a list of lists. If it is not nil, Type and Scalar are
	// ignored.
	Elements *Field
	// Merge is true if a strategic merge patch merges the list (patchStrategy "merge" in
	// Kubernetes). Other lists are replaced.
	Merge bool
	// MergeKey is the member that identifies the elements of a merged list (patchMergeKey
	// in Kubernetes). If empty, the elements are scalars and are compared by value.
	MergeKey string
	// RetainKeys makes clients list the retained members in their patches (patchStrategy
	// "retainKeys"). It is for objects in which some members exclude others. The server applies
	// $retainKeys in every object, even without RetainKeys.
	RetainKeys bool
	// Keys are the members that identify the elements of a list in a server-side apply
	// (x-kubernetes-list-map-keys). If nil, MergeKey is the only key.
	Keys []string
	// Set makes a server-side apply treat a list of scalars as a set (x-kubernetes-list-type
	// "set"). Lists of scalars with Merge are sets, too.
	Set bool
	// Atomic is true if a server-side apply replaces the list or object as a whole, although
	// it has a MergeKey or members. Lists without MergeKey, Keys, Merge and Set are always
	// replaced.
	Atomic bool
	// Default is the value that a server-side apply assumes for an absent member that is one of the
	// Keys of a list: a string, an int64, a float64 or a bool. If nil, there is no default.
	Default any
}

// ListExtensions returns the extensions of OpenAPI that direct a server-side apply: the list type,
// the keys, and the map type. It is empty for a field with the default behavior of its type.
func (f Field) ListExtensions() map[string]any {
	keys := f.Keys
	if keys == nil && f.MergeKey != "" {
		keys = []string{f.MergeKey}
	}
	switch {
	case f.Atomic && f.List:
		return map[string]any{"x-kubernetes-list-type": "atomic"}
	case f.Atomic:
		return map[string]any{"x-kubernetes-map-type": "atomic"}
	case f.List && keys != nil:
		list := make([]any, len(keys))
		for i, k := range keys {
			list[i] = k
		}
		return map[string]any{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list}
	case f.List && (f.Set || f.Merge):
		return map[string]any{"x-kubernetes-list-type": "set"}
	}
	return nil
}

// A Scalar is the type of a value that is neither an object nor a list.
type Scalar string

// The scalar types: the types of JSON, and strings and numbers with a special format.
const (
	String  Scalar = "string"
	Integer Scalar = "integer"
	Number  Scalar = "number"
	Boolean Scalar = "boolean"
	// Int32 is a 32-bit integer. Integer is a 64-bit integer.
	Int32 Scalar = "int32"
	// Time is a string in the format of RFC 3339. Bytes is a base64 string (RFC 4648).
	Time  Scalar = "date-time"
	Bytes Scalar = "byte"
	// MicroTime is a Time with exactly six digits after the second (metav1.MicroTime).
	MicroTime Scalar = "micro-time"
	// IntOrString is an integer or a string. Quantity is a number or a string with a unit.
	IntOrString Scalar = "int-or-string"
	Quantity    Scalar = "quantity"
)

// Field returns the description of the member with the given name, or the zero Field if no such
// member is known.
func (t *Type) Field(name string) Field {
	if t == nil {
		return Field{}
	}
	if f, ok := t.Fields[name]; ok {
		return f
	}
	if t.AdditionalProperties != nil {
		return *t.AdditionalProperties
	}
	return Field{}
}

// find returns the description of the member with the given name. known is false if t does not
// describe it.
func (t *Type) find(name []byte) (f Field, known bool) {
	if f, known = t.Fields[string(name)]; known || t.AdditionalProperties == nil {
		return f, known
	}
	return *t.AdditionalProperties, true
}

// Strategy returns the field's patch strategy in Kubernetes' notation: "merge",
// "retainKeys" or "merge,retainKeys". It is empty if the field has the default strategy of
// its type.
func (f Field) Strategy() string {
	switch {
	case f.Merge && f.RetainKeys:
		return "merge,retainKeys"
	case f.Merge:
		return "merge"
	case f.RetainKeys:
		return "retainKeys"
	}
	return ""
}
