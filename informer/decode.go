package informer

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/listwatch/listwatch"
)

// decoder returns how objects become values where nobody says it, and whether they can go then.
func defaultDecoder[T any]() (decode func(*listwatch.Object) (T, error), release bool) {
	asItIs := func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil }
	if decode, ok := any(asItIs).(func(*listwatch.Object) (T, error)); ok {
		return decode, false
	}
	return decodeJSON[T], true
}

// decodeJSON is [listwatch.Decode] with what is to become encoding/json: the same rules, in a third of the time and with a third of the
// garbage. Nothing that it returns shares memory with o. A json.Unmarshaler must copy what it keeps, as always.
func decodeJSON[T any](o *listwatch.Object) (T, error) {
	var t T
	err := jsonv2.Unmarshal(o.Data, &t, jsonOptions)
	return t, err // who calls says of what
}

// rules are those of encoding/json. Its type Number is a mere string to who has a Number of its own.
var jsonOptions = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(
	func(d *jsontext.Decoder, n *json.Number) error {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		return json.Unmarshal(value, n)
	},
)))
