package admission

import (
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi"
	kubeschema "github.com/listwatch/listwatch/kubeapi/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// oneKind is a Cluster that has one kind and no objects.
type oneKind struct {
	Cluster
	kubeapi.Resource
}

// Find implements [Cluster].
func (c oneKind) Find(is func(*kubeapi.Resource) bool) []kubeapi.Resource {
	if is(&c.Resource) {
		return []kubeapi.Resource{c.Resource}
	}
	return nil
}

func TestSchemaOfATypeInItselfEnds(t *testing.T) {
	node := &kubeschema.Type{Name: "com.example.Node", Fields: map[string]kubeschema.Field{
		"size": {Scalar: kubeschema.Int32}, "at": {Scalar: kubeschema.Time},
	}}
	node.Fields["children"] = kubeschema.Field{Type: node, List: true}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tree"}
	tree := &kubeschema.Type{Fields: map[string]kubeschema.Field{"spec": {Type: node}}}
	s := testkit.Must(schemas{oneKind{Resource: kubeapi.Resource{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Schema: tree,
	}}}.ResolveSchema(kind))(t)
	at := func(names ...string) spec.Schema {
		at := *s
		for _, name := range names {
			if name == "[]" {
				at = *at.Items.Schema
			} else {
				at = at.Properties[name]
			}
		}
		return at
	}
	for _, c := range []struct {
		path       []string
		kind       string
		properties int
	}{
		{[]string{"spec"}, "object", 3},
		{[]string{"spec", "size"}, "integer", 0},
		{[]string{"spec", "at"}, "string", 0},
		{[]string{"spec", "children", "[]"}, "object", 0},
		{[]string{"metadata", "labels"}, "object", 0},
		{[]string{"metadata", "ownerReferences", "[]", "uid"}, "string", 0},
		{[]string{"kind"}, "string", 0},
	} {
		got := at(c.path...)
		if !got.Type.Contains(c.kind) || len(got.Properties) != c.properties || got.Ref.String() != "" {
			t.Errorf("%q: got %+v, want the type %s and %d properties", c.path, got, c.kind, c.properties)
		}
	}
}
