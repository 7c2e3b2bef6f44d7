package listwatch

import "fmt"

// A Describer is a Source that describes its collection.
type Describer interface {
	Describe() Description
}

// A Description describes a collection.
type Description struct {
	// APIVersion and Kind are the type of the objects, as in Kubernetes: "apps/v1" and
	// "Deployment".
	APIVersion, Kind string
	// Fields lists the paths that a field selector may use, besides metadata.name and
	// metadata.namespace.
	Fields []string
	// FieldRules holds rules for the values of some Fields, by path.
	FieldRules map[string]FieldRule
	// Encoding is the encoding of the objects. If nil, objects are JSON.
	Encoding Encoding `json:"-"`
	// Epoch changes when the versions start again from a lower value. Versions of different epochs
	// cannot be compared. It is empty if this never happens.
	Epoch string
}

// Describe returns the Description of the [Describer] that [As] finds for s. An empty Kind becomes
// "Object", and an empty APIVersion becomes "v1".
func Describe(s Source) Description {
	var d Description
	if describer, ok := As[Describer](s); ok {
		d = describer.Describe()
	}
	if d.Kind == "" {
		d.Kind = "Object"
	}
	if d.APIVersion == "" {
		d.APIVersion = "v1"
	}
	return d
}

// At is like [Object.At], for an object of the collection that d describes. Code that serves any
// collection must use it, because Object.At can change only JSON.
func (d Description) At(o *Object, v Version) *Object {
	if d.Encoding == nil {
		return o.At(v)
	}
	data := d.Encoding.WithVersion(o.Data, v)
	return &Object{Key: o.Key, Version: v, Labels: o.Labels, Fields: o.Fields, Data: data}
}

// Check returns an error if the collection cannot apply s: if a field selector uses a field that is
// not in d.Fields, or if s has a projection and the objects are not JSON.
func (d Description) Check(s *Selection) error {
	if err := s.Fields.Check(d.Fields); err != nil || s.Projection.Empty() {
		return err
	}
	return d.RequireJSON("a projection (fields)")
}

// RequireJSON returns an error of code [Unsupported] if d.Encoding is set. The error says that what
// needs JSON.
func (d Description) RequireJSON(what string) error {
	if d.Encoding == nil {
		return nil
	}
	return &Error{
		Code:    Unsupported,
		Message: fmt.Sprintf("%s needs JSON, but the objects of %s are encoded by %T", what, d.typeName(), d.Encoding),
	}
}
