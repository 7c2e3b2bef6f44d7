package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

func TestCheckNamesWrongTypes(t *testing.T) {
	whole := &Type{Name: "x.A"}
	whole.Fields = map[string]Field{
		"s": {Scalar: String}, "i": {Scalar: Integer}, "j": {Scalar: Int32}, "n": {Scalar: Number},
		"b": {Scalar: Boolean},
		"t": {Scalar: Time}, "u": {Scalar: MicroTime}, "y": {Scalar: Bytes}, "e": {Scalar: IntOrString},
		"q":   {Scalar: Quantity},
		"any": {}, "a": {Type: whole, List: true}, "l": {Scalar: String, List: true},
		"m": {Type: &Type{AdditionalProperties: &Field{Scalar: Integer, List: true}}},
	}
	for doc, want := range map[string]string{
		`{"s":"","i":-9223372036854775808,"j":7,"n":1e400,"b":false,"t":"2006-01-02T15:04:05.5+01:00","y":"aGk=","e":"x","q":"1.5Gi","any":[{}]}`: "",
		`{"s":null,"i":null,"a":[null,{}],"l":[null],"m":{"x":null,"y":[null]},"other":{"s":7}}`:                                                  "",
		`{"e":-7,"q":0.5,"a":[],"l":[],"m":{}}`: "",
		`{"q":" 1Ki "}`:                         "",
		`{"q":""}`:                              `q: want a quantity such as "100m" or "2Gi", got ""`,
		`{"s":7}`:                               "s: want a string, got 7",
		`{"i":1.0}`:                             "i: want a 64-bit integer, got 1.0",
		`{"j":2147483648}`:                      "j: want a 32-bit integer, got 2147483648",
		`{"n":"1"}`:                             `n: want a number, got "1"`,
		`{"b":0}`:                               "b: want true or false, got 0",
		`{"t":"2006-01-02"}`:                    `t: want a time such as "2006-01-02T15:04:05Z", got "2006-01-02"`,
		`{"u":"2006-01-02T15:04:05.123456+01:00"}`: "",
		`{"u":"2006-01-02T15:04:05Z"}`:             `u: want a time such as "2006-01-02T15:04:05.000000Z", got "2006-01-02T15:04:05Z"`,
		`{"y":"?"}`:                                `y: want a base64 string, got "?"`,
		`{"e":1.5}`:                                "e: want a 32-bit integer or a string, got 1.5",
		`{"q":"much"}`:                             `q: want a quantity such as "100m" or "2Gi", got "much"`,
		`{"q":{}}`:                                 `q: want a quantity such as "100m" or "2Gi", got an object`,
		`{"a":{}}`:                                 "a: want a list, got an object",
		`{"a":[{},{"a":[{"s":[]}]}]}`:              "a[1].a[0].s: want a string, got a list",
		`{"l":["x",7]}`:                            "l[1]: want a string, got 7",
		`{"m":{"x.y":[1,"2"]}}`:                    `m["x.y"][1]: want a 64-bit integer, got "2"`,
		`{"m":7}`:                                  "m: want an object, got 7",
		`[]`:                                       "the object: want an object, got a list",
		`{"s":` + strings.Repeat("1", 99) + `}`:    "s: want a string, got " + strings.Repeat("1", 40) + "…",
	} {
		_, err := whole.Check([]byte(doc))
		if want == "" && err != nil ||
			want != "" && (!errors.Is(err, listwatch.Invalid) || listwatch.AsError(err).Message != want) {
			t.Errorf("%s: got %v, want %q", doc, err, want)
		}
	}
	if _, err := (*Type)(nil).Check([]byte(`7`)); err != nil {
		t.Errorf("nil Type: got %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(
		[]byte(
			`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"ports":[{"containerPort":1}],"resources":{"limits":{"cpu":"1"}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := rawjson.Compact(data)
		if err != nil {
			return
		}
		if _, err := Kubernetes("io.k8s.api.core.v1.Pod").Check(doc); err != nil && !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%s: got %v", doc, err)
		}
	})
}
