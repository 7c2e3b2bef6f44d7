package kubeapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/internal/apihttp"
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

// A jsonMap is a JSON object under construction. OpenAPI documents have too many different
// parts to declare a type for each.
type jsonMap map[string]any

// openAPI2Refs is the prefix of references to definitions in OpenAPI version 2.
const openAPI2Refs = "#/definitions/"

// definitions holds the schemas of an OpenAPI document by name.
type definitions struct {
	refs string // prefix of references to the schemas
	all  jsonMap
}

func newDefinitions(refs string) *definitions {
	d := &definitions{refs, jsonMap{}}
	d.reference(objectMeta())
	meta := d.all[objectMeta().Name].(jsonMap)
	meta["description"] = "The metadata that every object has."
	setDescriptions(meta, metaDescriptions)
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

func setDescriptions(s jsonMap, descriptions map[string]string) {
	properties := s["properties"].(jsonMap)
	for name, description := range descriptions {
		if p, ok := properties[name].(jsonMap); ok {
			p["description"] = description
		}
	}
}

// addResource adds the kinds that are served at the paths of r.
func (d *definitions) addResource(r Resource) {
	d.addKind(r, r.Kind+
		" is an object. The server checks the fields whose types it knows, and stores all fields unchanged.")
	scale := scaleResource
	if _, there := d.all[scale.schemaName()]; r.Scale == nil || there {
		return
	}
	scale.Schema = scaleSchema()
	s := d.addKind(scale, "The desired and the observed number of replicas of an object, and their selector.")
	setDescriptions(s, map[string]string{"spec": "The desired state.", "status": "The observed state."})
}

// addKind adds the schema of the kind of r. If r declares no schema, addKind adds one with
// apiVersion, kind, metadata, spec and status. Additional fields are always allowed, unless the
// schema is a copy of r.Schema.OpenAPI.
func (d *definitions) addKind(r Resource, description string) jsonMap {
	s, there := d.all[r.schemaName()].(jsonMap)
	switch {
	case there: // another resource has the same schema
	case r.Schema != nil && r.Schema.OpenAPI != nil && d.refs != openAPI2Refs:
		s = d.published(r.Schema)
	case r.Schema != nil:
		s = d.object(r.Schema)
	default:
		s = d.object(withMetadata(&schema.Type{Fields: map[string]schema.Field{
			"spec": {Type: &schema.Type{}}, "status": {Type: &schema.Type{}},
		}}))
		setDescriptions(
			s, map[string]string{
				"spec": "The desired state, in any form.", "status": "The observed state, in any form.",
			})
	}
	d.all[r.schemaName()] = s
	if s["description"] == nil {
		s["description"] = description
	}
	setDescriptions(s, map[string]string{
		"apiVersion": "The group and version of the kind: " + r.APIVersion() + ".",
		"kind":       "The kind of the object: " + r.Kind + ".",
		"metadata":   "The name of the object, its labels, and other metadata.",
	})
	kinds, _ := s["x-kubernetes-group-version-kind"].([]metav1.GroupVersionKind)
	s["x-kubernetes-group-version-kind"] = append(kinds, r.groupVersionKind())
	return s
}

// published returns the schema in t.OpenAPI, extended by the members that every object has.
func (d *definitions) published(t *schema.Type) jsonMap {
	s := jsonMap{}
	if err := json.Unmarshal(t.OpenAPI, &s); err != nil {
		return d.object(t)
	}
	properties, _ := s["properties"].(map[string]any)
	all := jsonMap{}
	maps.Copy(all, properties)
	for name := range withMetadata(&schema.Type{}).Fields {
		all[name] = d.field(t.Fields[name])
	}
	s["properties"] = all
	return s
}

// reference returns the schema of a value of type t, which is a reference if t has a name.
func (d *definitions) reference(t *schema.Type) jsonMap {
	if t.Name == "" {
		return d.object(t)
	}
	if _, there := d.all[t.Name]; !there {
		d.all[t.Name] = jsonMap{} // avoids an endless recursion if t contains itself
		d.all[t.Name] = d.object(t)
	}
	return jsonMap{"$ref": d.refs + t.Name}
}

func (d *definitions) object(t *schema.Type) jsonMap {
	s := jsonMap{"type": "object"}
	if t.Atomic {
		s["x-kubernetes-map-type"] = "atomic"
	}
	if t.AdditionalProperties != nil {
		s["additionalProperties"] = d.field(*t.AdditionalProperties)
	} else {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	if len(t.Fields) > 0 {
		properties := jsonMap{}
		for name, f := range t.Fields {
			properties[name] = d.field(f)
		}
		s["properties"] = properties
	}
	return s
}

// field returns the schema of a field. The caller may add members to the schema, such as
// a description, even if the schema refers to a named type.
func (d *definitions) field(f schema.Field) jsonMap {
	s := d.scalar(f.Scalar)
	if f.Type != nil {
		s = d.reference(f.Type)
	}
	if f.Elements != nil {
		s = d.field(*f.Elements)
	}
	if f.List {
		s = jsonMap{"type": "array", "items": s}
	}
	if s["$ref"] != nil && d.refs != openAPI2Refs {
		// In OpenAPI 3.0 a reference must not have siblings; Kubernetes clients understand allOf.
		s = jsonMap{"allOf": []jsonMap{s}}
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

func (d *definitions) scalar(s schema.Scalar) jsonMap {
	oneOf := func(types ...schema.Scalar) jsonMap {
		if d.refs == openAPI2Refs {
			// OpenAPI version 2 has no oneOf, so the type is string. If s is int-or-string, the
			// format shows it.
			return jsonMap{"type": "string"}
		}
		var all []jsonMap
		for _, t := range types {
			all = append(all, jsonMap{"type": string(t)})
		}
		return jsonMap{"oneOf": all}
	}
	switch s {
	case "":
		// The schema is not empty, because kubectl explain treats an empty one as missing.
		return jsonMap{"x-kubernetes-preserve-unknown-fields": true}
	case schema.Time, schema.Bytes:
		return jsonMap{"type": "string", "format": string(s)}
	case schema.MicroTime:
		return jsonMap{"type": "string", "format": string(schema.Time)}
	case schema.Int32:
		return jsonMap{"type": string(schema.Integer), "format": string(s)}
	case schema.IntOrString:
		either := oneOf(schema.Integer, schema.String)
		either["format"] = string(s)
		return either
	case schema.Quantity:
		return oneOf(schema.String, schema.Number)
	}
	return jsonMap{"type": string(s)}
}

// kubectl requests OpenAPI version 2 if version 3 does not contain a kind. Versions of
// kubectl below 1.27 also request it before each write. They accept only Protocol Buffers, under
// one of two media types. Without a response, kubectl refuses to write. If the document does
// not contain the kind either, kubectl leaves the validation to the server. Therefore the
// server responds with a document without any kinds.

var openAPI2Protobuf = []string{
	"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
	"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
}

// acceptsOpenAPI2Protobuf reports whether the Accept headers contain one of the media types
// in openAPI2Protobuf. It compares strings, because the second type contains an @ and cannot
// be parsed (rfc9110#section-8.3.1).
func acceptsOpenAPI2Protobuf(accept []string) bool {
	all := strings.Join(accept, ",")
	return strings.Contains(all, openAPI2Protobuf[0]) || strings.Contains(all, openAPI2Protobuf[1])
}

func serveOpenAPI2Protobuf(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", openAPI2Protobuf[0])
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	apihttp.WriteBody(w, r, http.StatusOK, minimalOpenAPI2())
}

// minimalOpenAPI2 encodes an openapi.v2.Document (gnostic's OpenAPIv2.proto) with its
// version and title and without paths.
func minimalOpenAPI2() []byte {
	info := openAPIInfo()
	about := appendProtobufField(nil, 1, info["title"].(string))
	about = appendProtobufField(about, 2, info["version"].(string))
	document := appendProtobufField(nil, 1, "2.0")
	document = appendProtobufField(document, 2, string(about))
	return appendProtobufField(document, 8, "")
}

// appendProtobufField appends a field of at most 127 bytes, which is a string or an encoded
// message.
func appendProtobufField(dst []byte, number byte, value string) []byte {
	const lengthDelimited = 2
	return append(append(dst, number<<3|lengthDelimited, byte(len(value))), value...)
}
