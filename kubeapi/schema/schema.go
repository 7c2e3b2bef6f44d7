// Package schema says what fields objects have: enough for OpenAPI to show them, and for strategic merge patches to know which lists
// are merged, and by which key. [Type.Check] holds objects to what is known; they may have fields that no Type knows.
//
// A [Type] is declared in Go,
//
//	&schema.Type{Fields: map[string]schema.Field{
//		"spec": {Type: &schema.Type{Fields: map[string]schema.Field{
//			"parts": {List: true, Merge: true, MergeKey: "name"},
//		}}},
//	}}
//
// or had from [Kubernetes], which knows the types of the resources that every cluster has.
package schema

// A Type is what is known of a JSON object. It must not be modified once it is in use; a nil Type knows nothing.
type Type struct {
	// Name is what OpenAPI calls the type, such as "io.k8s.api.core.v1.Container". Types of one name must be one. Empty: the type is
	// written out wherever it is used; then it must not contain itself.
	Name string
	// Fields are the members, by name.
	Fields map[string]Field
	// Others is what members hold that Fields does not name, in an object whose names are the writer's, such as labels. Nil: nothing
	// is known of them.
	AdditionalProperties *Field
}

// A Field is what is known of a member of an object.
type Field struct {
	// Type is that of the value, or of each element of a list, where these are objects.
	Type *Type
	// Scalar is what the value, or each element, is otherwise. Empty, and without a Type: anything.
	Scalar Scalar
	// List is true where the value is a list.
	List bool
	// Merge is true where a strategic merge patch merges the list with the one that is there (patchStrategy "merge" in Kubernetes); a
	// list that is not merged is replaced.
	Merge bool
	// MergeKey is the member that tells the elements of a merged list apart (patchMergeKey in Kubernetes). Empty: the elements are
	// scalars, and tell themselves apart.
	MergeKey string
	// RetainKeys asks clients to say in their patches which members stay (patchStrategy "retainKeys"), for objects of which one
	// member excludes others. Servers obey what the patch says, wherever it says it.
	RetainKeys bool
}

// A Scalar is what a value is that is no object and no list.
type Scalar string

// The scalars: JSON's, and strings and numbers of certain forms.
const (
	String  Scalar = "string"
	Integer Scalar = "integer"
	Number  Scalar = "number"
	Boolean Scalar = "boolean"
	// Int32 is an Integer of 32 bits; Integers have 64.
	Int32 Scalar = "int32"
	// Time is a string in the form of RFC 3339; Bytes are base64 (RFC 4648).
	Time  Scalar = "date-time"
	Bytes Scalar = "byte"
	// MicroTime is a Time with six digits behind the second, no more and no less (metav1.MicroTime).
	MicroTime Scalar = "micro-time"
	// IntOrString is either, and Quantity is a number or a string of one with a unit.
	IntOrString Scalar = "int-or-string"
	Quantity    Scalar = "quantity"
)

// Field returns what is known of the member of that name; the zero Field where that is nothing.
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

// Strategy is the field's strategy as Kubernetes spells it: "merge", "retainKeys", "merge,retainKeys"; empty: the default of its kind.
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
