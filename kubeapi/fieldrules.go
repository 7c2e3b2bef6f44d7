package kubeapi

import (
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/schema"
)

// fieldPaths holds, by apiVersion and kind, the paths of the fields whose names differ from their
// paths. Kubernetes defines such a field in the function that returns the selectable fields of the
// kind, such as ToSelectableFields in pkg/registry/core/event.
var fieldPaths = map[string]map[string][]string{
	"v1 Event": {
		"source": {"source.component", "reportingComponent"},
		// the fields of events.k8s.io, for the same events
		"regarding.kind": {"involvedObject.kind"}, "regarding.namespace": {"involvedObject.namespace"},
		"regarding.name": {"involvedObject.name"}, "regarding.uid": {"involvedObject.uid"},
		"regarding.apiVersion":      {"involvedObject.apiVersion"},
		"regarding.resourceVersion": {"involvedObject.resourceVersion"},
		"regarding.fieldPath":       {"involvedObject.fieldPath"}, "reportingController": {"reportingComponent"},
	},
	"v1 Pod":       {"spec.host": {"spec.nodeName"}},
	"batch/v1 Job": {"status.successful": {"status.succeeded"}},
}

// noNamespaceField holds the built-in kinds without namespaces for which Kubernetes refuses the
// field metadata.namespace. It accepts the field for all other built-in kinds, whose objects have
// the empty namespace, and refuses it for custom resources.
var noNamespaceField = map[string]bool{"v1 Namespace": true, "v1 Node": true}

// hasNamespaceField reports whether field selectors may use the namespace of the objects of r.
func (r Resource) hasNamespaceField() bool {
	return r.Namespaced || !r.isCustom() && !noNamespaceField[r.APIVersion()+" "+r.Kind]
}

// FieldRules returns the rules for the values of r.Fields.
func (r Resource) FieldRules() map[string]listwatch.FieldRule {
	if r.Custom {
		return nil // Kubernetes does not know the types of the fields of custom resources
	}
	var rules map[string]listwatch.FieldRule
	for _, field := range r.Fields {
		rule, path := listwatch.FieldRule{Paths: fieldPaths[r.APIVersion()+" "+r.Kind][field]}, field
		if rule.Paths != nil {
			path = rule.Paths[0]
		}
		switch scalarAt(r.Schema, path) {
		case schema.Boolean:
			rule.Absent = "false"
		case schema.Integer, schema.Int32:
			rule.Absent = "0"
		}
		if rule.Paths == nil && rule.Absent == "" {
			continue
		}
		if rules == nil {
			rules = map[string]listwatch.FieldRule{}
		}
		rules[field] = rule
	}
	return rules
}

// scalarAt returns the type of the value at path in objects of type t, or "" if it is not a scalar.
func scalarAt(t *schema.Type, path string) schema.Scalar {
	f := schema.Field{Type: t}
	for name := range strings.SplitSeq(path, ".") {
		if f = f.Type.Field(name); f.List {
			return ""
		}
	}
	return f.Scalar
}
