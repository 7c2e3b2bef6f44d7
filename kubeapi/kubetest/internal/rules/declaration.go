package rules

import (
	"slices"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
)

// A Declaration is a resource with the rules for its objects. The resource is built in, or a
// CustomResourceDefinition declares it.
type Declaration struct {
	// Resource is the version of the stored objects.
	kubeapi.Resource
	Rules
	// Others are the other versions of the resource.
	Others []Version
	// Unserved is true if clients cannot use the version of the stored objects.
	Unserved bool
	// Versions are the versions that a cluster serves.
	Versions []string
	// Convert converts objects between the versions. It is nil if there is only one version.
	Convert kubeapi.Converter
}

// Rules are the rules for the objects of a resource.
type Rules struct {
	// Admit checks and completes objects.
	Admit Admit
	// Complete does what a cluster does with the body of a request before admission: it fills in
	// defaults, for example. Admit does it, too. It may be nil.
	Complete func(data []byte) ([]byte, error)
}

// A Version is another version of a resource, with the rules for objects that are written in it.
type Version struct {
	kubeapi.Resource
	Rules
	// Served is true if clients can use this version.
	Served bool
}

// CollectionSpec returns the description of the stored objects, which have the fields of all
// versions.
func (d Declaration) CollectionSpec() store.CollectionSpec {
	r := d.Resource
	r.Fields = slices.Clone(r.Fields)
	for _, v := range d.Others {
		for _, field := range v.Fields {
			if !slices.Contains(r.Fields, field) {
				r.Fields = append(r.Fields, field)
			}
		}
	}
	return r.CollectionSpec()
}
