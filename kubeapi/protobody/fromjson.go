package protobody

import (
	"bytes"
	"sync"

	"github.com/listwatch/listwatch"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// A codec reads JSON and writes Protocol Buffers.
type codec struct {
	json     *json.Serializer
	protobuf *protobuf.Serializer
}

var codecs = sync.OnceValue(func() codec {
	s := scheme()
	return codec{
		json:     json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{}),
		protobuf: protobuf.NewSerializer(s, s),
	}
})

// Knows reports whether objects of the kind have a form in Protocol Buffers.
func Knows(apiVersion, kind string) bool {
	return scheme().Recognizes(schema.FromAPIVersionAndKind(apiVersion, kind))
}

// FromJSON converts object, which is JSON of a kind that [Knows] reports, to Protocol Buffers. If
// object does not name its type, it has the given one. The result is what a Kubernetes API server
// sends for an object that it has decoded: members that the Go type of the kind lacks are left out,
// an empty list that Go omits is absent, and quantities are canonical. If the JSON does not fit the
// Go type, the error has code Corrupt.
func FromJSON(apiVersion, kind string, object []byte) ([]byte, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	decoded, actual, err := codecs().json.Decode(object, &gvk, nil)
	if err != nil {
		return nil, unconvertible(kind, err)
	}
	decoded.GetObjectKind().SetGroupVersionKind(*actual)
	var out bytes.Buffer
	if err := codecs().protobuf.Encode(decoded, &out); err != nil {
		return nil, unconvertible(kind, err)
	}
	return out.Bytes(), nil
}

func unconvertible(kind string, cause error) error {
	return &listwatch.Error{
		Code: listwatch.Corrupt, Message: "the object is not a " + kind + " of Kubernetes' Go packages", Err: cause,
	}
}
