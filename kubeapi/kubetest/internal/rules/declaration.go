package rules

import "github.com/listwatch/listwatch/kubeapi"

// A Declaration is a resource with the rules for its objects. The resource is built in, or a
// CustomResourceDefinition declares it.
type Declaration struct {
	kubeapi.Resource
	// Admit has the rules for the objects.
	Admit Admit
	// Versions are the versions that a cluster serves. Unserved describes those that an Env does
	// not serve, and the conversion if it has no effect.
	Versions, Unserved []string
}
