package kubernetes

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/protobody"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// clientEncoder returns the encoder that client-go uses for a version and a media type.
func clientEncoder(t testing.TB, version schema.GroupVersion, mediaType string) runtime.Encoder {
	t.Helper()
	negotiated := scheme.Codecs.WithoutConversion()
	info, ok := runtime.SerializerInfoForMediaType(negotiated.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("client-go has no serializer for %s", mediaType)
	}
	return negotiated.EncoderForVersion(info.Serializer, version)
}

func encodeObject(t testing.TB, e runtime.Encoder, o runtime.Object) []byte {
	t.Helper()
	return testkit.Must(runtime.Encode(e, o))(t)
}

// decodeJSON decodes data and preserves the text of numbers.
func decodeJSON(t testing.TB, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// Property: an object encoded in Protocol Buffers and converted by our decoder gives the same
// JSON as the object encoded in JSON.
func TestProtobufDecodesToTheSameJSON(t *testing.T) {
	const each = 60
	filler := newFiller(1)
	all := stableKinds()
	names := slices.SortedFunc(maps.Keys(all),
		func(a, b schema.GroupVersionKind) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	for _, gvk := range names {
		inProtobuf := clientEncoder(t, gvk.GroupVersion(), runtime.ContentTypeProtobuf)
		inJSON := clientEncoder(t, gvk.GroupVersion(), runtime.ContentTypeJSON)
		for i := range each {
			o := reflect.New(all[gvk]).Interface().(runtime.Object)
			if i > 0 { // the first object is empty
				filler.Fill(o)
			}
			data, err := protobody.ToJSON(encodeObject(t, inProtobuf, o), math.MaxInt64)
			if err != nil {
				t.Fatalf("%s: %v for %#v", gvk, err, o)
			}
			got, want := decodeJSON(t, data), decodeJSON(t, encodeObject(t, inJSON, o))
			if !reflect.DeepEqual(got, want) { // much faster than cmp.Diff
				t.Fatalf("%s: the JSON differs (-want +got):\n%s", gvk, cmp.Diff(want, got))
			}
		}
	}
	t.Logf("%d objects of %d kinds", each*len(names), len(names))
}
