package kubeproto

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An own is a message that servers make themselves, which is JSON in memory: a Status, or an object
// of which only the metadata is known, as in bookmarks.
type own interface {
	schema.ObjectKind
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

func newOwn(kind string) own {
	if kind == "Status" {
		return new(metav1.Status)
	}
	return new(metav1.PartialObjectMetadata)
}

// fromJSON encodes the JSON of a message that a server made itself.
func fromJSON(data []byte) ([]byte, error) {
	var t metav1.TypeMeta
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	o := newOwn(t.Kind)
	if err := json.Unmarshal(data, o); err != nil {
		return nil, err
	}
	message, err := o.Marshal()
	if err != nil {
		return nil, err
	}
	out := append(appendEnvelope(nil, t.APIVersion, t.Kind, len(message)), message...)
	return append(out, envelopeEnd...), nil
}

// toJSON returns the compact JSON of a Status, or of the metadata of another object.
func toJSON(data []byte) ([]byte, error) {
	parsed, err := parse(data)
	if err != nil {
		return nil, err
	}
	kind := string(parsed.kind)
	o := newOwn(kind)
	if err := o.Unmarshal(parsed.raw.value); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(string(parsed.apiVersion), kind))
	return json.Marshal(o)
}
