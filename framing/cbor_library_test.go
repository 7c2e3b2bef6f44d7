package framing

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// This test shows why CBOR is implemented here and not by a library
// (docs/adr/0010-json-and-cbor.md): a library converts the JSON to Go values, which preserve
// neither exact numbers nor the order of members. If the test fails after an update of the
// library, consider using the library.
func TestCBORLibraryLosesNumbersAndOrder(t *testing.T) {
	for _, c := range []struct {
		name, object string
		// decodable is true if the library decodes the output of CBORSeq to the same object. It
		// still cannot encode the object without changing it.
		decodable bool
	}{
		{"an integer beyond 2^53", `{"n":9007199254740993}`, true},
		{"a number beyond float64", `{"n":1e400}`, false},
		{"a float without a fraction", `{"n":1.0}`, false},
		{"the order of members", `{"b":1,"a":2,"d":3,"c":4,"f":5,"e":6,"h":7,"g":8}`, false},
		{"members of one name", `{"a":1,"b":2,"a":3}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			message, err := CBORSeq{}.AppendMessage(nil, WatchEvent{Type: "ADDED", Object: []byte(c.object)})
			if err != nil {
				t.Fatal(err)
			}
			if e, err := (CBORSeq{}).DecodeMessage(message); err != nil || string(e.Object) != c.object {
				t.Errorf("our CBOR returns %s and %v, want %s", e.Object, err, c.object)
			}
			if got, err := viaLibrary([]byte(c.object)); err == nil && string(got) == c.object {
				t.Errorf("the library returns %s unchanged", got)
			}
			got, err := fromCBOR(message)
			if unchanged := err == nil && string(got) == c.object; unchanged != c.decodable {
				t.Errorf("the library decodes our CBOR as %s and %v; unchanged is %v, want %v", got, err, unchanged,
					c.decodable)
			}
		})
	}
}

// viaLibrary converts a JSON object to CBOR and back, both with the library.
func viaLibrary(object []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(object, &value); err != nil {
		return nil, err
	}
	item, err := cbor.Marshal(map[string]any{"object": value})
	if err != nil {
		return nil, err
	}
	return fromCBOR(item)
}

// fromCBOR decodes an event with the library and returns its object as JSON.
func fromCBOR(item []byte) ([]byte, error) {
	mode, err := cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](),
		DupMapKey:      cbor.DupMapKeyQuiet,
	}.DecMode()
	if err != nil {
		return nil, err
	}
	var event struct {
		Object any `cbor:"object"`
	}
	if err := mode.Unmarshal(item, &event); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(event.Object)
	return bytes.TrimSpace(out.Bytes()), err
}
