package protobuf

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/kubeapi/protobody"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// encoder returns what client-go's clients of a version write an object with, in one of its media types.
func encoder(t testing.TB, version schema.GroupVersion, mediaType string) runtime.Encoder {
	t.Helper()
	negotiated := scheme.Codecs.WithoutConversion()
	info, ok := runtime.SerializerInfoForMediaType(negotiated.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("client-go doesn't know %s", mediaType)
	}
	return negotiated.EncoderForVersion(info.Serializer, version)
}

func encode(t testing.TB, e runtime.Encoder, o runtime.Object) []byte {
	t.Helper()
	data, err := runtime.Encode(e, o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// value returns what data means: numbers as they are written.
func value(t testing.TB, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// Property: a client that writes Protocol Buffers and one that writes JSON write the same.
func TestObjectsComeOutAsTheirJSON(t *testing.T) {
	const each = 60
	filler := newFiller(1)
	all := kinds()
	names := slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupVersionKind) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	for _, gvk := range names {
		inProtobuf := encoder(t, gvk.GroupVersion(), runtime.ContentTypeProtobuf)
		inJSON := encoder(t, gvk.GroupVersion(), runtime.ContentTypeJSON)
		for i := range each {
			o := reflect.New(all[gvk]).Interface().(runtime.Object)
			if i > 0 { // the first has nothing
				filler.Fill(o)
			}
			data, err := protobody.ToJSON(encode(t, inProtobuf, o), math.MaxInt64)
			if err != nil {
				t.Fatalf("%s: %v, of %#v", gvk, err, o)
			}
			got, want := value(t, data), value(t, encode(t, inJSON, o))
			if !reflect.DeepEqual(got, want) { // cmp.Diff alone takes many times as long
				t.Fatalf("%s: other than its JSON (-want +got):\n%s", gvk, cmp.Diff(want, got))
			}
		}
	}
	t.Logf("%d objects of %d kinds", each*len(names), len(names))
}
