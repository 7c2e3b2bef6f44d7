package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

const messageTablePath = "../../kubeapi/protobody/kubernetes.txt"

// stableVersion matches the API versions whose kinds are in the table. Other versions
// change often, and their clients can send JSON.
var stableVersion = regexp.MustCompile(`^v[0-9]+$`)

// stableKinds returns the Go types of the kinds in the table. The table has all kinds that can be
// listed, because a server stores only these kinds. It also has kinds that clients send only in
// requests: Scale, DeleteOptions, and the reviews of a client's own rights.
func stableKinds() map[schema.GroupVersionKind]reflect.Type {
	all := map[schema.GroupVersionKind]reflect.Type{
		autoscalingv1.SchemeGroupVersion.WithKind("Scale"):                     reflect.TypeFor[autoscalingv1.Scale](),
		{Version: "v1", Kind: "DeleteOptions"}:                                 reflect.TypeFor[metav1.DeleteOptions](),
		authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"): reflect.TypeFor[authorizationv1.SelfSubjectAccessReview](),
		authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"):  reflect.TypeFor[authorizationv1.SelfSubjectRulesReview](),
	}
	known := scheme.Scheme.AllKnownTypes()
	for gvk, t := range known {
		if _, listed := known[gvk.GroupVersion().WithKind(gvk.Kind+"List")]; listed && stableVersion.MatchString(gvk.Version) {
			all[gvk] = t
		}
	}
	return all
}

// protobufScalars holds the names of the Go types whose Protocol Buffers encoding is not the
// list of their fields.
var protobufScalars = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time](): "time", reflect.TypeFor[metav1.MicroTime](): "microtime",
	reflect.TypeFor[intstr.IntOrString](): "intorstring", reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[[]byte](): "bytes", reflect.TypeFor[metav1.FieldsV1](): "json", reflect.TypeFor[runtime.RawExtension](): "json",
}

// A messageTable collects the fields of every message that the kinds use.
type messageTable struct {
	t           *testing.T
	messages    map[string][]string
	apiVersions map[string]string // the versions of the messages that are kinds
}

// typeWord returns the name of t in the table. The table does not support a list or map
// inside another one or behind a pointer.
func (w *messageTable) typeWord(t reflect.Type, nested bool) string {
	if s, ok := protobufScalars[t]; ok {
		return s
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer && !nested:
		return "*" + w.typeWord(t.Elem(), true)
	case kind == reflect.Slice && isMessage(t) && t.Elem().Kind() == reflect.String:
		return "strings"
	case kind == reflect.Slice && !nested:
		return "[]" + w.typeWord(t.Elem(), true)
	case kind == reflect.Map && !nested && t.Key().Kind() == reflect.String:
		return "map[string]" + w.typeWord(t.Elem(), true)
	case kind == reflect.String, kind == reflect.Bool, kind == reflect.Int32, kind == reflect.Int64:
		return kind.String()
	case kind == reflect.Struct && isMessage(t) && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
		w.addMessage(t)
		return messageName(t)
	}
	w.t.Fatalf("%v: the table cannot represent this type", t)
	return ""
}

func isMessage(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[runtime.ProtobufMarshaller]())
}

// messageName returns the last two elements of the package path and the type name, such as
// core.v1.Pod.
func messageName(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	return strings.Join(path[len(path)-2:], ".") + "." + t.Name()
}

func (w *messageTable) addMessage(t reflect.Type) {
	name := messageName(t)
	if _, seen := w.messages[name]; seen {
		return
	}
	w.messages[name] = nil
	var lines []string
	for i := range t.NumField() {
		if f := t.Field(i); f.Type != reflect.TypeFor[metav1.TypeMeta]() {
			lines = append(lines, w.fieldLine(f))
		}
	}
	w.messages[name] = lines
}

func (w *messageTable) fieldLine(f reflect.StructField) string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	tag := strings.Split(f.Tag.Get("protobuf"), ",") // wire type, number and options
	if len(tag) < 3 || name == "-" || strings.Contains(options, "string") {
		w.t.Fatalf("%s `%s`: the table cannot represent this field", f.Name, f.Tag)
	}
	switch {
	case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
		name = "."
	case strings.Contains(options, "omitzero"):
		name += "?"
	case !strings.Contains(options, "omitempty"):
		name += "!"
	}
	return tag[1] + " " + name + " " + w.typeWord(f.Type, false)
}

func (w *messageTable) String() string {
	var text strings.Builder
	text.WriteString("# The messages of packages k8s.io/api and k8s.io/apimachinery. Type parser describes the format.\n")
	text.WriteString("# Generated by: cd interop && go test ./kubernetes -run TestMessageTable -update\n")
	prefix := ""
	for _, name := range slices.Sorted(maps.Keys(w.messages)) {
		if p := name[:strings.LastIndexByte(name, '.')+1]; p != prefix {
			prefix = p
			fmt.Fprintf(&text, "package %s\n", strings.TrimSuffix(prefix, "."))
		}
		fmt.Fprintln(&text, strings.TrimSpace(name[len(prefix):]+" "+w.apiVersions[name]))
		for _, line := range w.messages[name] {
			fmt.Fprintf(&text, "\t%s\n", strings.Replace(line, prefix, "", 1))
		}
	}
	return text.String()
}

func TestMessageTableIsUpToDate(t *testing.T) {
	w := &messageTable{t: t, messages: map[string][]string{}, apiVersions: map[string]string{}}
	for gvk, kind := range stableKinds() {
		name := messageName(kind)
		if kind.Name() != gvk.Kind || w.apiVersions[name] != "" {
			t.Errorf("%s has the Go type %v, want a unique type of the same name", gvk, kind)
		}
		w.addMessage(kind)
		w.apiVersions[name] = gvk.GroupVersion().String()
	}
	w.apiVersions["meta.v1.DeleteOptions"] = "*" // this message belongs to every group
	if *update {
		if err := os.WriteFile(messageTablePath, []byte(w.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(messageTablePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.String(), string(got)); diff != "" {
		t.Errorf("the table is outdated (-want +got); run the test with -update:\n%s", diff)
	}
}
