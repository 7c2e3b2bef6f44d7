package protobuf

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "write the table of Kubernetes' messages anew")

const table = "../../kubeapi/protobody/kubernetes.txt"

// stable are the versions whose kinds are in the table: others come and go, and their clients can write JSON.
var stable = regexp.MustCompile(`^v[0-9]+$`)

// kinds returns Go's types of the kinds in the table: those that can be listed, for others are not kept anywhere, and two that are
// written to paths of these.
func kinds() map[schema.GroupVersionKind]reflect.Type {
	all := map[schema.GroupVersionKind]reflect.Type{
		autoscalingv1.SchemeGroupVersion.WithKind("Scale"): reflect.TypeFor[autoscalingv1.Scale](),
		{Version: "v1", Kind: "DeleteOptions"}:             reflect.TypeFor[metav1.DeleteOptions](),
	}
	known := scheme.Scheme.AllKnownTypes()
	for gvk, t := range known {
		if _, listed := known[gvk.GroupVersion().WithKind(gvk.Kind+"List")]; listed && stable.MatchString(gvk.Version) {
			all[gvk] = t
		}
	}
	return all
}

// scalars are the types that encode themselves as something else than their Go kind says.
var scalars = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time](): "time", reflect.TypeFor[metav1.MicroTime](): "microtime",
	reflect.TypeFor[intstr.IntOrString](): "intorstring", reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[[]byte](): "bytes", reflect.TypeFor[metav1.FieldsV1](): "json", reflect.TypeFor[runtime.RawExtension](): "json",
}

// A writer writes the table: for every message that the kinds reach, its fields.
type writer struct {
	t           *testing.T
	messages    map[string][]string
	apiVersions map[string]string // of those that are objects
}

// word returns what the table calls t. No list or map is in another, nor behind a pointer.
func (w *writer) word(t reflect.Type, nested bool) string {
	if s, ok := scalars[t]; ok {
		return s
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer && !nested:
		return "*" + w.word(t.Elem(), true)
	case kind == reflect.Slice && isMessage(t) && t.Elem().Kind() == reflect.String:
		return "strings"
	case kind == reflect.Slice && !nested:
		return "[]" + w.word(t.Elem(), true)
	case kind == reflect.Map && !nested && t.Key().Kind() == reflect.String:
		return "map[string]" + w.word(t.Elem(), true)
	case kind == reflect.String, kind == reflect.Bool, kind == reflect.Int32, kind == reflect.Int64:
		return kind.String()
	case kind == reflect.Struct && isMessage(t) && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
		w.add(t)
		return messageName(t)
	}
	w.t.Fatalf("%v: the table has no word for it", t)
	return ""
}

func isMessage(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[runtime.ProtobufMarshaller]())
}

// messageName is the package's last two words and the name: core.v1.Pod.
func messageName(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	return strings.Join(path[len(path)-2:], ".") + "." + t.Name()
}

func (w *writer) add(t reflect.Type) {
	name := messageName(t)
	if _, seen := w.messages[name]; seen {
		return
	}
	w.messages[name] = nil
	var lines []string
	for i := range t.NumField() {
		if f := t.Field(i); f.Type != reflect.TypeFor[metav1.TypeMeta]() {
			lines = append(lines, w.line(f))
		}
	}
	w.messages[name] = lines
}

func (w *writer) line(f reflect.StructField) string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	tag := strings.Split(f.Tag.Get("protobuf"), ",") // wire type, number, and more
	if len(tag) < 3 || name == "-" || strings.Contains(options, "string") {
		w.t.Fatalf("%s `%s`: the table has no words for it", f.Name, f.Tag)
	}
	switch {
	case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
		name = "."
	case strings.Contains(options, "omitzero"):
		name += "?"
	case !strings.Contains(options, "omitempty"):
		name += "!"
	}
	return tag[1] + " " + name + " " + w.word(f.Type, false)
}

func (w *writer) String() string {
	var text strings.Builder
	text.WriteString("# What packages k8s.io/api and k8s.io/apimachinery say of their messages; see parser.\n")
	text.WriteString("# Written by: cd interop && go test ./protobuf -run TestTheTable -update\n")
	prefix := ""
	for _, name := range slices.Sorted(maps.Keys(w.messages)) {
		of := name[:strings.LastIndexByte(name, '.')+1]
		if of != prefix {
			prefix = of
			fmt.Fprintf(&text, "package %s\n", strings.TrimSuffix(prefix, "."))
		}
		fmt.Fprintln(&text, strings.TrimSpace(name[len(prefix):]+" "+w.apiVersions[name]))
		for _, line := range w.messages[name] {
			fmt.Fprintf(&text, "\t%s\n", strings.Replace(line, prefix, "", 1))
		}
	}
	return text.String()
}

func TestTheTableOfMessagesIsThatOfKubernetes(t *testing.T) {
	w := &writer{t: t, messages: map[string][]string{}, apiVersions: map[string]string{}}
	for gvk, kind := range kinds() {
		name := messageName(kind)
		if kind.Name() != gvk.Kind || w.apiVersions[name] != "" {
			t.Errorf("%s is %v, and perhaps not alone", gvk, kind)
		}
		w.add(kind)
		w.apiVersions[name] = gvk.GroupVersion().String()
	}
	w.apiVersions["meta.v1.DeleteOptions"] = "*" // every group has it
	if *update {
		if err := os.WriteFile(table, []byte(w.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.String(), string(got)); diff != "" {
		t.Errorf("the table is not what Kubernetes has (-want +got); -update writes it anew:\n%s", diff)
	}
}
