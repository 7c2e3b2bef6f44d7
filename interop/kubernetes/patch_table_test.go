package kubernetes

import (
	"encoding/json"
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
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

const typeTablePath = "../../kubeapi/schema/kubernetes.txt"

// goTypes holds the Go types of the default resources by kind.
var goTypes = map[string]any{
	"Pod": &corev1.Pod{}, "Service": &corev1.Service{}, "ConfigMap": &corev1.ConfigMap{}, "Namespace": &corev1.Namespace{},
	"Deployment": &appsv1.Deployment{}, "Event": &corev1.Event{},
}

// A typeTable collects the fields of every struct that the kinds use.
type typeTable struct {
	t     *testing.T
	types map[string][]string
}

// schemaScalars holds the names of the Go types that encoding/json does not encode by fields.
var schemaScalars = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time](): "date-time", reflect.TypeFor[metav1.MicroTime](): "micro-time",
	reflect.TypeFor[intstr.IntOrString](): "int-or-string", reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[[]byte](): "byte", reflect.TypeFor[metav1.FieldsV1](): "any",
}

func (w *typeTable) typeWord(t reflect.Type) string {
	if s, ok := schemaScalars[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.typeWord(t.Elem())
	case reflect.Slice:
		if elem := w.typeWord(t.Elem()); !strings.HasPrefix(elem, "[]") && !strings.HasPrefix(elem, "map") {
			return "[]" + elem
		}
	case reflect.Map:
		return "map[string]" + w.typeWord(t.Elem())
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
			w.addType(t)
			return typeName(t)
		}
	}
	w.t.Fatalf("%v: the table cannot represent this type", t)
	return ""
}

// typeName returns the name of t in OpenAPI.
func typeName(t reflect.Type) string {
	return "io." + strings.ReplaceAll(strings.ReplaceAll(t.PkgPath(), "k8s.io", "k8s"), "/", ".") + "." + t.Name()
}

func (w *typeTable) addType(t reflect.Type) {
	name := typeName(t)
	if _, seen := w.types[name]; seen {
		return
	}
	w.types[name] = nil
	w.types[name] = w.fieldLines(name, t)
	slices.Sort(w.types[name])
}

// fieldLines describes the fields of the struct t, which may be embedded in the type owner.
func (w *typeTable) fieldLines(owner string, t reflect.Type) []string {
	var fields []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			fields = append(fields, w.fieldLines(owner, f.Type)...)
			continue
		}
		line := name + " " + w.typeWord(f.Type)
		strategy := f.Tag.Get("patchStrategy")
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			if !strings.Contains(strategy, "merge") {
				w.t.Fatalf("%v.%s has a merge key, but not the patch strategy merge", t, f.Name)
			}
			strategy = strings.Replace(strategy, "merge", "merge="+key, 1)
		}
		if words := applyWords(owner, name, strategy); words != "" {
			strategy = strings.TrimPrefix(strategy+","+words, ",")
		}
		fields = append(fields, strings.TrimSpace(line+" "+strategy))
	}
	return fields
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

// isAtomic reports whether an apply replaces objects of the named type as a whole.
func isAtomic(name string) bool {
	t, ok := applySchema.FindNamedType(name)
	return ok && t.Map != nil && t.Map.ElementRelationship == smdschema.Atomic
}

// applyWords returns the words of the table that describe how server-side apply treats a field of
// the type owner. It omits words that the patch strategy implies.
func applyWords(owner, field, strategy string) string {
	def, ok := applySchema.FindNamedType(owner)
	if !ok || def.Map == nil {
		return ""
	}
	f, ok := def.Map.FindField(field)
	if !ok {
		return ""
	}
	merge, _, _ := strings.Cut(strategy, ",")
	list, object := f.Type.Inlined.List, f.Type.Inlined.Map
	text, _ := f.Default.(string)
	switch {
	case list != nil && list.ElementRelationship == smdschema.Associative && len(list.Keys) > 0:
		if keys := strings.Join(list.Keys, "+"); merge != "merge="+keys {
			return "keys=" + keys
		}
	case list != nil && list.ElementRelationship == smdschema.Associative && merge == "":
		return "set"
	case list != nil && list.ElementRelationship != smdschema.Associative && strings.HasPrefix(merge, "merge"),
		object != nil && object.ElementRelationship == smdschema.Atomic:
		return "atomic"
	case text != "" && applyKeys[owner+" "+field]:
		return "default=" + text
	}
	return ""
}

func TestTypeTableIsUpToDate(t *testing.T) {
	w := &typeTable{t: t, types: map[string][]string{}}
	for _, kind := range goTypes {
		w.addType(reflect.TypeOf(kind).Elem())
	}
	var text strings.Builder
	text.WriteString("# The types of the default resources in package k8s.io/api. Parse describes the format.\n")
	text.WriteString("# Generated by: cd interop && go test ./kubernetes -run TestTypeTable -update\n")
	for _, name := range slices.Sorted(maps.Keys(w.types)) {
		fmt.Fprint(&text, name)
		if isAtomic(name) {
			fmt.Fprint(&text, " atomic")
		}
		fmt.Fprintln(&text)
		for _, field := range w.types[name] {
			fmt.Fprintf(&text, "\t%s\n", field)
		}
	}
	if *update {
		if err := os.WriteFile(typeTablePath, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(typeTablePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text.String(), string(got)); diff != "" {
		t.Errorf("the table is outdated (-want +got); run the test with -update:\n%s", diff)
	}
}

func TestDefaultResourcesHaveTheirTypes(t *testing.T) {
	for _, r := range kubeapi.DefaultResources() {
		kind := goTypes[r.Kind]
		if kind == nil || r.Schema == nil || r.Schema.Name != typeName(reflect.TypeOf(kind).Elem()) {
			t.Errorf("%s: got schema %+v, want the schema of %T", r.Kind, r.Schema, kind)
		}
	}
}
