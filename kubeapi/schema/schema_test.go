package schema

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestKubernetesTypes(t *testing.T) {
	container := Kubernetes("io.k8s.api.core.v1.Pod").Field("spec").Type.Field("containers")
	if container.MergeKey != "name" || container.Strategy() != "merge" ||
		container.Type.Field("ports").MergeKey != "containerPort" {
		t.Errorf("got %+v, want containers merged by name, and their ports by containerPort", container)
	}
	template := Kubernetes("io.k8s.api.apps.v1.Deployment").Field("spec").Type.Field("template").Type
	if template.Field("spec").Type.Field("containers").Type != container.Type {
		t.Error("deployments and pods must have the same container type")
	}
	if s := template.Field("spec").Type.Field("volumes").Strategy(); s != "merge,retainKeys" {
		t.Errorf("volumes: got %q, want merge,retainKeys", s)
	}
	spec := Kubernetes("io.k8s.api.apps.v1.Deployment").Field("spec").Type
	if s := spec.Field("strategy").Strategy(); s != "retainKeys" {
		t.Errorf("strategy: got %q, want retainKeys", s)
	}
	labels := Kubernetes("io.k8s.api.core.v1.Pod").Field("metadata").Type.Field("labels").Type
	if f := labels.Field("any name"); f.Scalar != String {
		t.Errorf("additional property: got %+v, want a string", f)
	}
	if f := container.Type.Field("none"); !reflect.DeepEqual(f, Field{}) {
		t.Errorf("unknown field: got %+v", f)
	}
	if f := (*Type)(nil).Field("none"); !reflect.DeepEqual(f, Field{}) {
		t.Errorf("field of a nil Type: got %+v", f)
	}
	if Kubernetes("io.k8s.api.core.v1.None") != nil {
		t.Error("Kubernetes returned an unknown type")
	}
}

func TestTypesWithTheirOwnJSONAreScalars(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(typ reflect.Type)
	check = func(typ reflect.Type) {
		if _, scalar := scalars[typ]; scalar || seen[typ] {
			return
		}
		seen[typ] = true
		if typ.Kind() == reflect.Pointer {
			check(typ.Elem())
			return
		}
		if typ.Implements(reflect.TypeFor[json.Marshaler]()) ||
			reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Marshaler]()) {
			t.Errorf("%v: the schema must not describe its Go fields", typ)
		}
		switch typ.Kind() {
		case reflect.Slice, reflect.Map:
			check(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				check(typ.Field(i).Type)
			}
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		default:
			t.Errorf("%v: no type of the schema describes it", typ)
		}
	}
	for _, root := range kinds {
		check(reflect.TypeOf(root))
	}
	if len(seen) < 150 {
		t.Errorf("checked only %d types", len(seen))
	}
}
