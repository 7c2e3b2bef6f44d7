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
	// Admit checks the objects.
	Admit Admit
	// Others are the other versions of the resource.
	Others []Version
	// Unserved is true if clients cannot use the version of the stored objects.
	Unserved bool
	// Versions are the versions that a cluster serves.
	Versions []string
	// Read converts stored objects, and Write objects to be stored, between the versions. Both are
	// nil if there is only one version.
	Read, Write kubeapi.Converter
}

// A Version is another version of a resource.
type Version struct {
	kubeapi.Resource
	// Admit checks the objects that are written in this version.
	Admit Admit
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
