package kubeapi

import (
	"slices"
	"strings"

	"github.com/listwatch/listwatch/kubeapi/internal/openapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scaleSchema returns the type of the objects of the scale subresource.
func scaleSchema() *schema.Type {
	replicas := schema.Field{Scalar: schema.Int32}
	return withMetadata(&schema.Type{Fields: map[string]schema.Field{
		"spec": {Type: &schema.Type{Fields: map[string]schema.Field{"replicas": replicas}}},
		"status": {Type: &schema.Type{Fields: map[string]schema.Field{
			"replicas": replicas, "selector": {Scalar: schema.String},
		}}},
	}})
}

// schemaName returns the name of the schema, by default the reversed group, the version and
// the kind, such as com.example.demo.v1.Widget.
func (r Resource) schemaName() string {
	if r.Schema != nil && r.Schema.Name != "" {
		return r.Schema.Name
	}
	parts := strings.Split(r.Group, ".")
	slices.Reverse(parts)
	if r.Group == "" {
		parts = []string{"core"}
	}
	return strings.Join(append(parts, r.Version, r.Kind), ".")
}

// newDefinitions returns definitions with the schema of metadata. references is the prefix of
// references.
func newDefinitions(references string) openapi.Definitions {
	d := openapi.Definitions{References: references, All: openapi.Map{}}
	d.Reference(objectMeta())
	meta := d.All[objectMeta().Name].(openapi.Map)
	meta["description"] = "The metadata that every object has."
	openapi.Describe(meta, metaDescriptions)
	return d
}

// metaDescriptions describes the members of the metadata that the server interprets. All
// other members are only stored.
var metaDescriptions = map[string]string{
	"name":              "The name, unique in the namespace.",
	"generateName":      "The prefix of the name that the server generates if name is empty.",
	"namespace":         "The namespace in which the name is unique.",
	"uid":               "Distinguishes the object from others that had the same name at other times. Set by the server.",
	"resourceVersion":   "The version of the object, for watches and for optimistic concurrency. Set by the server.",
	"generation":        "The number of changes of the object, except changes of metadata and status. Set by the server.",
	"creationTimestamp": "The time at which the object was created. Set by the server.",
	"deletionTimestamp": "The time of the delete request, if finalizers delay the deletion. Set by the server.",
	"labels":            "The names and values that label selectors match.",
	"annotations":       "Additional data that selectors do not match.",
	"finalizers":        "The names of the programs that must act before the object is deleted.",
}

// addResource adds the kinds that are served at the paths of r to d.
func addResource(d openapi.Definitions, r Resource) {
	addKind(d, r, r.Kind+
		" is an object. The server checks the fields whose types it knows, and stores all fields unchanged.")
	scale := scaleResource
	if _, there := d.All[scale.schemaName()]; r.Scale == nil || there {
		return
	}
	scale.Schema = scaleSchema()
	s := addKind(d, scale, "The desired and the observed number of replicas of an object, and their selector.")
	openapi.Describe(s, map[string]string{"spec": "The desired state.", "status": "The observed state."})
}

// addKind adds the schema of the kind of r to d. If r declares no schema, addKind adds one with
// apiVersion, kind, metadata, spec and status. Additional fields are always allowed, unless the
// schema is a copy of r.Schema.OpenAPI.
func addKind(d openapi.Definitions, r Resource, description string) openapi.Map {
	s, there := d.All[r.schemaName()].(openapi.Map)
	switch {
	case there: // another resource has the same schema
	case r.Schema != nil:
		s = d.Kind(r.Schema, withMetadata(&schema.Type{}).Fields)
	default:
		s = d.Kind(withMetadata(&schema.Type{Fields: map[string]schema.Field{
			"spec": {Type: &schema.Type{}}, "status": {Type: &schema.Type{}},
		}}), nil)
		openapi.Describe(
			s, map[string]string{
				"spec": "The desired state, in any form.", "status": "The observed state, in any form.",
			})
	}
	d.All[r.schemaName()] = s
	if s["description"] == nil {
		s["description"] = description
	}
	openapi.Describe(s, map[string]string{
		"apiVersion": "The group and version of the kind: " + r.APIVersion() + ".",
		"kind":       "The kind of the object: " + r.Kind + ".",
		"metadata":   "The name of the object, its labels, and other metadata.",
	})
	kinds, _ := s["x-kubernetes-group-version-kind"].([]metav1.GroupVersionKind)
	s["x-kubernetes-group-version-kind"] = append(kinds, r.groupVersionKind())
	return s
}
