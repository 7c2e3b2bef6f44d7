package patch

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/kubeapi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var update = flag.Bool("update", false, "write the table of Kubernetes' types anew")

const table = "../../kubeapi/schema/kubernetes.txt"

// kinds are Go's types for the default resources, by kind.
var kinds = map[string]any{
	"Pod": &corev1.Pod{}, "Service": &corev1.Service{}, "ConfigMap": &corev1.ConfigMap{}, "Namespace": &corev1.Namespace{},
	"Deployment": &appsv1.Deployment{}, "Event": &corev1.Event{},
}

// A writer writes the table: for every struct that the kinds reach, its fields.
type writer struct {
	t     *testing.T
	types map[string][]string
}

// scalars are the types that encode themselves as something else than their Go kind says.
var scalars = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time](): "date-time", reflect.TypeFor[metav1.MicroTime](): "micro-time",
	reflect.TypeFor[intstr.IntOrString](): "int-or-string", reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[[]byte](): "byte", reflect.TypeFor[metav1.FieldsV1](): "any",
}

func (w *writer) name(t reflect.Type) string {
	if s, ok := scalars[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.name(t.Elem())
	case reflect.Slice:
		if elem := w.name(t.Elem()); !strings.HasPrefix(elem, "[]") && !strings.HasPrefix(elem, "map") {
			return "[]" + elem
		}
	case reflect.Map:
		return "map[string]" + w.name(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int32:
		return "int32"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Struct:
		if !t.Implements(reflect.TypeFor[json.Marshaler]()) && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
			w.add(t)
			return typeName(t)
		}
	}
	w.t.Fatalf("%v: the table has no word for it", t)
	return ""
}

// typeName is what OpenAPI calls t.
func typeName(t reflect.Type) string {
	return "io." + strings.ReplaceAll(strings.ReplaceAll(t.PkgPath(), "k8s.io", "k8s"), "/", ".") + "." + t.Name()
}

func (w *writer) add(t reflect.Type) {
	name := typeName(t)
	if _, seen := w.types[name]; seen {
		return
	}
	w.types[name] = nil
	w.types[name] = w.fields(t)
	slices.Sort(w.types[name])
}

func (w *writer) fields(t reflect.Type) []string {
	var fields []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			fields = append(fields, w.fields(f.Type)...)
			continue
		}
		line := name + " " + w.name(f.Type)
		strategy := f.Tag.Get("patchStrategy")
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			if !strings.Contains(strategy, "merge") {
				w.t.Fatalf("%v.%s has a merge key and is not merged", t, f.Name)
			}
			strategy = strings.Replace(strategy, "merge", "merge="+key, 1)
		}
		fields = append(fields, strings.TrimSpace(line+" "+strategy))
	}
	return fields
}

func TestTheTableOfTypesIsThatOfKubernetes(t *testing.T) {
	w := &writer{t: t, types: map[string][]string{}}
	for _, kind := range kinds {
		w.add(reflect.TypeOf(kind).Elem())
	}
	var text strings.Builder
	text.WriteString("# What package k8s.io/api says of the types of the default resources; see Parse.\n")
	text.WriteString("# Written by: cd interop && go test ./patch -run TestTheTable -update\n")
	for _, name := range slices.Sorted(maps.Keys(w.types)) {
		fmt.Fprintf(&text, "%s\n", name)
		for _, field := range w.types[name] {
			fmt.Fprintf(&text, "\t%s\n", field)
		}
	}
	if *update {
		if err := os.WriteFile(table, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text.String(), string(got)); diff != "" {
		t.Errorf("the table is not what Kubernetes has (-want +got); -update writes it anew:\n%s", diff)
	}
}

func TestEveryDefaultResourceHasItsTypeOfKubernetes(t *testing.T) {
	for _, r := range kubeapi.DefaultResources() {
		kind := kinds[r.Kind]
		if kind == nil || r.Schema == nil || r.Schema.Name != typeName(reflect.TypeOf(kind).Elem()) {
			t.Errorf("%s: got the schema %+v of %T", r.Kind, r.Schema, kind)
		}
	}
}
