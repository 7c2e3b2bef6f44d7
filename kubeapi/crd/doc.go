// Package crd reads CustomResourceDefinitions of Kubernetes, which declare resources for a
// [kubeapi.Handler]: names, printer columns, selectable fields, the status and scale
// subresources, and a schema, which is used for OpenAPI, field validation and server-side apply.
//
// Objects are stored as they were written. So, unlike in a cluster, the defaults of the schema are
// not filled in and unknown fields are kept. [Definition.Ignored] names the parts of a definition
// that have no effect.
package crd
