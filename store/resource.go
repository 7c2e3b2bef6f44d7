package store

import (
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Resource declares a collection: what it holds and by which rules. The zero Resource is kind "Object" of apiVersion "v1",
// without namespaces. It must not be modified once a collection has it.
type CollectionSpec struct {
	// APIVersion and Kind are those of the objects, as in Kubernetes: "apps/v1" and "Deployment". Empty: "v1" and "Object".
	APIVersion, Kind string
	// Plural is the name of the collection in messages and paths. Empty: Kind in lower case with an s.
	Plural string
	// Namespaced is true where every object is in a namespace; otherwise none is.
	Namespaced bool
	// Fields are the paths that a field selector may name beside metadata.name and metadata.namespace, such as
	// "spec.nodeName". Strings are read as they are, numbers and booleans as they are written; everything else is absent.
	Fields []string
	// CheckName says whether an object may have a name; its error is shown to the writer. Nil: [listwatch.CheckName], the
	// DNS subdomain that Kubernetes demands of most kinds. Names that can't be one segment of a path are refused before.
	CheckName func(name string) error
}

// WithDefaults returns r with its empty members filled in.
func (r CollectionSpec) WithDefaults() CollectionSpec {
	if r.APIVersion == "" {
		r.APIVersion = "v1"
	}
	if r.Kind == "" {
		r.Kind = "Object"
	}
	if r.Plural == "" {
		r.Plural = strings.ToLower(r.Kind) + "s"
	}
	if r.CheckName == nil {
		r.CheckName = listwatch.CheckName
	}
	return r
}

// Group is the API group: what stands before the slash in APIVersion; empty where there is none.
func (r CollectionSpec) Group() string {
	group, _, ok := strings.Cut(r.APIVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// QualifiedName is the plural with the group, as messages and databases name the collection: "pods", "deployments.apps".
func (r CollectionSpec) QualifiedName() string {
	if g := r.Group(); g != "" {
		return r.Plural + "." + g
	}
	return r.Plural
}

// Description returns what a Source of r says of itself. epoch is [listwatch.Description.Epoch].
func (r CollectionSpec) Description(epoch string) listwatch.Description {
	return listwatch.Description{APIVersion: r.APIVersion, Kind: r.Kind, Fields: slices.Clone(r.Fields), Epoch: epoch}
}

// ReadFields returns the values that field selectors see in data, an object's compact JSON; nil where there are none. Backends
// that keep bytes use it to make [listwatch.Object.Fields] anew.
func (r CollectionSpec) ReadFields(data []byte) map[string]string {
	var fields map[string]string
	for _, path := range r.Fields {
		value, ok := scalar(rawjson.Lookup(data, strings.Split(path, ".")...))
		if !ok {
			continue
		}
		if fields == nil {
			fields = make(map[string]string, len(r.Fields))
		}
		fields[path] = value
	}
	return fields
}

func scalar(raw []byte) (text string, ok bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '{', '[', 'n':
		return "", false
	case '"':
		s, err := rawjson.String(raw)
		return s, err == nil
	}
	return string(raw), true
}
