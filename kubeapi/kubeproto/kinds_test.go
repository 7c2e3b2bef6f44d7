package kubeproto_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
)

var serializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// encode returns o as Kubernetes' own code encodes it.
func encode(t testing.TB, o runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := serializer.Encode(o, &out); err != nil {
		t.Fatalf("%T: %v", o, err)
	}
	return out.Bytes()
}

// A typedObject is an object of a kind of Kubernetes.
type typedObject interface {
	runtime.Object
	metav1.Object
}

// newObject returns a random object, whose version is v. It returns nil if the type is not an
// object with metadata.
func newObject(t testing.TB, random *rand.Rand, kind schema.GroupVersionKind, v int) typedObject {
	t.Helper()
	created, err := scheme.Scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := created.(typedObject)
	if !ok {
		return nil
	}
	fuzzer.FuzzerFor(metafuzzer.Funcs, random, scheme.Codecs).Fill(o)
	o.GetObjectKind().SetGroupVersionKind(kind)
	o.SetName(fmt.Sprint("o", v))
	o.SetNamespace("ns")
	o.SetResourceVersion(fmt.Sprint(v))
	o.SetLabels(map[string]string{"app": "web", "empty": ""})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)},
	}})
	return o
}

// eachKind calls test with objects of each kind of Kubernetes.
func eachKind(t *testing.T, test func(t *testing.T, objects []typedObject)) {
	random := rand.New(rand.NewSource(1))
	tested := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		var objects []typedObject
		for v := 1; v <= 3; v++ {
			if o := newObject(t, random, kind, v); o != nil {
				objects = append(objects, o)
			}
		}
		if objects == nil {
			continue
		}
		tested++
		t.Run(strings.ReplaceAll(kind.GroupVersion().String(), "/", "_")+"."+kind.Kind, func(t *testing.T) {
			test(t, objects)
		})
	}
	if tested < 100 {
		t.Errorf("tested %d kinds, want at least 100", tested)
	}
}

func TestObjectsAreReadAndChangedLikeTheirTypes(t *testing.T) {
	eachKind(t, func(t *testing.T, objects []typedObject) {
		for _, o := range objects {
			data := encode(t, o)
			got, err := kubeproto.Encoding{}.Read(data)
			if err != nil {
				t.Fatal(err)
			}
			want := &listwatch.Object{
				Key: listwatch.Key{Namespace: "ns", Name: o.GetName()}, Version: got.Version,
				Labels: o.GetLabels(), Data: data,
			}
			if diff := cmp.Diff(want, got); diff != "" || got.Version.String() != o.GetResourceVersion() {
				t.Errorf("Read, at version %d (-want +got):\n%s", got.Version, diff)
			}
			before := bytes.Clone(data)
			changed := kubeproto.Encoding{}.WithVersion(data, 12345678)
			o.SetResourceVersion("12345678")
			if !bytes.Equal(changed, encode(t, o)) || cap(changed) != len(changed) {
				t.Errorf("WithVersion: got %d bytes in %d:\n%q", len(changed), cap(changed), changed)
			}
			if !bytes.Equal(data, before) {
				t.Error("WithVersion has modified its argument")
			}
		}
	})
}

func TestRepresentationsEqualThoseOfTheServer(t *testing.T) {
	partial := map[string]string{"as": "PartialObjectMetadata", "g": "meta.k8s.io", "v": "v1"}
	drop := map[string]string{"drop": "metadata.managedFields"}
	both := map[string]string{"as": "PartialObjectMetadata", "g": "meta.k8s.io", "v": "v1", "drop": drop["drop"]}
	represent := func(t *testing.T, params map[string]string, data []byte) []byte {
		t.Helper()
		r, err := kubeproto.Represent(params, false)
		if err != nil || r == nil {
			t.Fatalf("%v: got %v, %v", params, r, err)
		}
		return r.AppendObject(nil, listwatch.Event{Type: listwatch.Added, Object: &listwatch.Object{Data: data}})
	}
	eachKind(t, func(t *testing.T, objects []typedObject) {
		o := objects[0]
		data := encode(t, o)
		metadata := meta.AsPartialObjectMetadata(o)
		metadata.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		metadata.APIVersion = "meta.k8s.io/v1"
		if got, want := represent(t, partial, data), encode(t, metadata); !bytes.Equal(got, want) {
			t.Errorf("metadata: got\n%q, want\n%q", got, want)
		}
		o.SetManagedFields(nil)
		if got, want := represent(t, drop, data), encode(t, o); !bytes.Equal(got, want) {
			t.Errorf("without managedFields: got\n%q, want\n%q", got, want)
		}
		metadata.SetManagedFields(nil)
		if got, want := represent(t, both, data), encode(t, metadata); !bytes.Equal(got, want) {
			t.Errorf("metadata without managedFields: got\n%q, want\n%q", got, want)
		}
	})
}

func TestListsEqualThoseOfTheServer(t *testing.T) {
	eachKind(t, func(t *testing.T, objects []typedObject) {
		kind := objects[0].GetObjectKind().GroupVersionKind()
		created, err := scheme.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			t.Skip(err) // no list of this kind
		}
		page := listwatch.Page{Version: 9, Continue: "more", Remaining: 4}
		items := make([]runtime.Object, len(objects))
		for i, o := range objects {
			items[i] = o
			read, err := kubeproto.Encoding{}.Read(encode(t, o))
			if err != nil {
				t.Fatal(err)
			}
			page.Items = append(page.Items, read)
		}
		if err := meta.SetList(created, items); err != nil {
			t.Fatal(err)
		}
		created.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		remaining := int64(4)
		list := created.(metav1.ListInterface)
		list.SetResourceVersion("9")
		list.SetContinue("more")
		list.SetRemainingItemCount(&remaining)
		want := encode(t, created)
		l := framing.List{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind + "List", Page: page}
		var got bytes.Buffer
		if err := (kubeproto.Encoding{}).WriteList(&got, l, nil); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("WriteList: %v, got\n%q, want\n%q", err, got.Bytes(), want)
		}
		read, err := kubeproto.Encoding{}.ReadList(bytes.NewReader(want), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, read); diff != "" {
			t.Errorf("ReadList (-want +got):\n%s", diff)
		}
	})
}

func TestFieldsEqualThoseOfTheJSON(t *testing.T) {
	compared := 0
	eachKind(t, func(t *testing.T, objects []typedObject) {
		for _, o := range objects {
			paths := pathsOf(reflect.TypeOf(o).Elem(), "", 4)
			if (kubeproto.Encoding{}).Fields(encode(t, o), []string{"metadata.name"})[0] == "" {
				t.Skip("not a stable kind, of which protobody knows no fields")
			}
			// The JSON is that of the decoded object, because a decoder fills missing messages.
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			want := listwatch.Description{Fields: paths}.ReadFields(data)
			for i, got := range (kubeproto.Encoding{}).Fields(encode(t, o), paths) {
				if compared++; got != want[paths[i]] {
					t.Errorf("%s: got %q, want %q", paths[i], got, want[paths[i]])
				}
			}
		}
	})
	if compared < 4000 {
		t.Errorf("compared %d values, want at least 4000", compared)
	}
}

// pathsOf returns the paths to the strings, numbers and booleans in JSON of type t.
func pathsOf(t reflect.Type, before string, depth int) (paths []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("protobuf") == "" || name == "-" {
			continue
		}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		isMarshaler := reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]())
		switch kind := of.Kind(); {
		case name == "" && kind == reflect.Struct:
			paths = append(paths, pathsOf(of, before, depth)...)
		case kind == reflect.Struct && depth > 0 && !isMarshaler:
			paths = append(paths, pathsOf(of, before+name+".", depth-1)...)
		case kind == reflect.String, kind == reflect.Bool, kind == reflect.Int32, kind == reflect.Int64:
			paths = append(paths, before+name)
		}
	}
	return paths
}
