package govalue

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
)

// A decodable has a member for every kind of value that a decoder handles differently.
type decodable struct {
	listwatch.Metadata `json:"metadata"`
	Text               string
	Flag               *bool             `json:"flag,omitempty"`
	Small              int8              `json:"small"`
	Big                uint64            `json:"big,string"`
	Real               float32           `json:"real"`
	Bytes              []byte            `json:"bytes"`
	Array              [2]int            `json:"array"`
	Map                map[int]string    `json:"map"`
	Any                any               `json:"any"`
	Raw                json.RawMessage   `json:"raw"`
	Number             json.Number       `json:"number"`
	Time               time.Time         `json:"time"`
	Nested             []*decodable      `json:"nested"`
	Pairs              map[string]*[]any `json:"pairs"`
	deeper
}

type deeper struct{ Deep, DEEP string }

var decodables = []string{
	`{"metadata":{"name":"a","labels":{"l":"v","m":"\u0000\ud800"},"creationTimestamp":"2026-11-21T10:00:00Z"},"text":"x","TEXT":"y"}`,
	`{"metadata":{"name":"a","creationTimestamp":null,"finalizers":[],"annotations":null},"flag":true,"small":-128,"big":"18446744073709551615"}`,
	`{"metadata":{},"real":1e38,"bytes":"AQI=","array":[1,2,3],"map":{"1":"a","-1":"b"},"any":{"a":[1,1e400,null]},"raw":{"a" :1}}`,
	`{"metadata":{},"real":0.1,"array":[1],"any":9007199254740993,"number":1.50,"nested":[null,{"deep":"d","DEEP":"e"}],"pairs":{"a":[],"b":null}}`,
	`{"metadata":{"name":1}}`, `{"small":128}`, `{"big":1}`, `{"map":{"x":"y"}}`, `{"time":"now"}`, `{"bytes":"?"}`,
	`{"number":"x"}`,
	`{"a":1,"a":2,"text":"x","text":"y"}`, `[]`, `null`, `"x"`, `1`, `{"nested":[{"nested":[{"nested":[]}]}]}`,
	`{"flag":null,"Flag":false}`,
}

func FuzzDecodeMatchesEncodingJSON(f *testing.F) {
	for _, d := range decodables {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return // a Source never returns invalid JSON
		}
		o := &listwatch.Object{Data: data}
		want, errWant := listwatch.Decode[decodable](o)
		got, err := Decode[decodable](o.Data)
		if (err == nil) != (errWant == nil) {
			t.Fatalf("%q: got error %v, want %v", data, err, errWant)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %+v, want %+v", data, got, want)
		}
	})
}

func TestDecodedValuesShareNoMemoryWithInput(t *testing.T) {
	for _, text := range decodables {
		o := &listwatch.Object{Data: []byte(text)}
		got, err := Decode[decodable](o.Data)
		clear(o.Data)
		want, errWant := Decode[decodable]([]byte(text))
		if (err == nil) != (errWant == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the value changed to %+v with the input bytes, want %+v", text, got, want)
		}
	}
}
