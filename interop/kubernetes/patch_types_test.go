package kubernetes

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// goTypes holds the Go types of the default resources by kind.
var goTypes = map[string]any{
	"Pod": &corev1.Pod{}, "Service": &corev1.Service{}, "ConfigMap": &corev1.ConfigMap{},
	"Namespace":  &corev1.Namespace{},
	"Deployment": &appsv1.Deployment{}, "Event": &corev1.Event{},
}

// typeName returns the name of t in OpenAPI.
func typeName(t reflect.Type) string {
	return "io." + strings.ReplaceAll(strings.ReplaceAll(t.PkgPath(), "k8s.io", "k8s"), "/", ".") + "." + t.Name()
}

// applySchema is the schema that kube-apiserver uses for server-side apply.
var applySchema = func() *smdschema.Schema {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	typed, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(pod)
	if err != nil {
		panic(err)
	}
	return typed.Schema()
}()

// applyKeys contains "TYPE MEMBER" if MEMBER is a key of a list whose elements have type TYPE.
var applyKeys = func() map[string]bool {
	keys := map[string]bool{}
	for _, t := range applySchema.Types {
		if t.Map == nil {
			continue
		}
		for _, f := range t.Map.Fields {
			if list := f.Type.Inlined.List; list != nil && list.ElementType.NamedType != nil {
				for _, key := range list.Keys {
					keys[*list.ElementType.NamedType+" "+key] = true
				}
			}
		}
	}
	return keys
}()

func TestSchemasMatchApply(t *testing.T) {
	seen := map[*schema.Type]bool{}
	for _, kind := range scheme.Scheme.AllKnownTypes() {
		compareWithApply(t, schema.Kubernetes(typeName(kind)), seen)
	}
	if len(seen) < 350 {
		t.Errorf("compared only %d types", len(seen))
	}
}

// compareWithApply compares the type and all types within it with the schema of kube-apiserver.
func compareWithApply(t *testing.T, own *schema.Type, seen map[*schema.Type]bool) {
	if own == nil || seen[own] {
		return
	}
	seen[own] = true
	if own.AdditionalProperties != nil {
		compareWithApply(t, own.AdditionalProperties.Type, seen)
	}
	for _, f := range own.Fields {
		compareWithApply(t, f.Type, seen)
	}
	theirs, ok := applySchema.FindNamedType(own.Name)
	if !ok || theirs.Map == nil {
		return
	}
	if atomic := theirs.Map.ElementRelationship == smdschema.Atomic; atomic != own.Atomic {
		t.Errorf("%s: got Atomic %v, want %v", own.Name, own.Atomic, atomic)
	}
	for name, f := range own.Fields {
		want, ok := theirs.Map.FindField(name)
		if !ok {
			t.Errorf("%s.%s is unknown to kube-apiserver", own.Name, name)
			continue
		}
		if diff := cmp.Diff(applyExtensions(want.Type.Inlined), fmt.Sprint(f.ListExtensions())); diff != "" &&
			!isAtomicList(want.Type.Inlined, f) {
			t.Errorf("%s.%s (-want +got):\n%s", own.Name, name, diff)
		}
		var value any
		// The empty text and 0 are the defaults of members that are required.
		if applyKeys[own.Name+" "+name] && want.Default != "" && fmt.Sprint(want.Default) != "0" {
			value = want.Default
		}
		if value != f.Default {
			t.Errorf("%s.%s: got default %v, want %v", own.Name, name, f.Default, value)
		}
	}
}

// isAtomicList reports whether both schemas replace a list as a whole. This is the default and
// needs no extension.
func isAtomicList(want smdschema.Atom, f schema.Field) bool {
	return want.List != nil && want.List.ElementRelationship == smdschema.Atomic && f.ListExtensions() == nil
}

// applyExtensions returns the extensions of OpenAPI that describe a field in kube-apiserver.
func applyExtensions(a smdschema.Atom) string {
	extensions := map[string]any{}
	switch list, object := a.List, a.Map; {
	case list != nil && list.ElementRelationship == smdschema.Atomic:
		extensions["x-kubernetes-list-type"] = "atomic"
	case list != nil && len(list.Keys) > 0:
		extensions["x-kubernetes-list-type"], extensions["x-kubernetes-list-map-keys"] = "map", list.Keys
	case list != nil:
		extensions["x-kubernetes-list-type"] = "set"
	case object != nil && object.ElementRelationship == smdschema.Atomic:
		extensions["x-kubernetes-map-type"] = "atomic"
	}
	return fmt.Sprint(extensions)
}

func TestDefaultResourcesHaveTheirTypes(t *testing.T) {
	for _, r := range kubeapi.DefaultResources() {
		kind := goTypes[r.Kind]
		if kind == nil || r.Schema == nil || r.Schema.Name != typeName(reflect.TypeOf(kind).Elem()) {
			t.Errorf("%s: got schema %+v, want the schema of %T", r.Kind, r.Schema, kind)
		}
	}
}
