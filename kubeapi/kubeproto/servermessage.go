package kubeproto

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A serverMessage is a message that servers make themselves, which is JSON in memory: a Status, or
// an object of which only the metadata is known, as in bookmarks.
type serverMessage interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

func newServerMessage(t metav1.TypeMeta) serverMessage {
	if t.Kind == "Status" {
		return &metav1.Status{TypeMeta: t}
	}
	return &metav1.PartialObjectMetadata{TypeMeta: t}
}

// fromJSON encodes the JSON of a message that a server made itself.
func fromJSON(data []byte) ([]byte, error) {
	var t metav1.TypeMeta
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	o := newServerMessage(t)
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
	o := newServerMessage(metav1.TypeMeta{APIVersion: string(parsed.apiVersion), Kind: string(parsed.kind)})
	if err := o.Unmarshal(parsed.raw.value); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}
