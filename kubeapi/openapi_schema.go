package kubeapi

import (
	"slices"
	"strings"
)

const metaSchema = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// root is the path below which a group at a version is: /api/v1 or /apis/apps/v1.
func (r Resource) root() string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.Group + "/" + r.Version
}

// schemaName is the group the other way round, the version and the kind, as in com.example.demo.v1.Widget.
func (r Resource) schemaName() string {
	parts := strings.Split(r.Group, ".")
	slices.Reverse(parts)
	if r.Group == "" {
		parts = []string{"core"}
	}
	return strings.Join(append(parts, r.Version, r.Kind), ".")
}

// schema describes an object as far as anything is known of it: its type and its metadata. All other fields are allowed.
func (r Resource) schema(refs string) jsonObject {
	open := func(description string) jsonObject {
		return jsonObject{"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true}
	}
	s := open(r.Kind + " is an object of any content: the server checks its type and its metadata and keeps everything else as it is written.")
	s["x-kubernetes-group-version-kind"] = []groupVersionKind{r.groupVersionKind()}
	s["properties"] = jsonObject{
		"apiVersion": text("The version of the schema of the object: " + r.APIVersion() + "."),
		"kind":       text("What the object is: " + r.Kind + "."),
		// A reference alone may have no description in OpenAPI 3.0; kubectl reads it from allOf.
		"metadata": jsonObject{"description": "What identifies the object.", "allOf": []jsonObject{{"$ref": refs + metaSchema}}},
		"spec":     open("What is wanted; free in form."),
		"status":   open("What is observed; free in form. Changes of it leave metadata.generation as it is."),
	}
	return s
}

func text(description string) jsonObject {
	return jsonObject{"type": "string", "description": description}
}

func objectMetaSchema() jsonObject {
	texts := func(description string) jsonObject {
		return jsonObject{"type": "object", "description": description, "additionalProperties": jsonObject{"type": "string"}}
	}
	moment := func(description string) jsonObject {
		return jsonObject{"type": "string", "format": "date-time", "description": description}
	}
	return jsonObject{
		"type": "object", "description": "The metadata that every object has.", "x-kubernetes-preserve-unknown-fields": true,
		"properties": jsonObject{
			"name":              text("The name, unique in the namespace."),
			"generateName":      text("What a name is made of where none is given."),
			"namespace":         text("The namespace that the name is unique in."),
			"uid":               text("Tells the object from others that had its name. Set by the server."),
			"resourceVersion":   text("The version of the object, for watches and for optimistic concurrency. Set by the server."),
			"generation":        jsonObject{"type": "integer", "format": "int64", "description": "Counts the changes of what is neither metadata nor status."},
			"creationTimestamp": moment("When the object was created. Set by the server."),
			"deletionTimestamp": moment("When the delete was asked for that finalizers hold up. Set by the server."),
			"labels":            texts("What selectors select by."),
			"annotations":       texts("Anything else."),
			"finalizers": jsonObject{
				"type": "array", "items": jsonObject{"type": "string"}, "description": "Who must act before the object can go.",
			},
		},
	}
}
