package rawjson

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestEqualComparesValues(t *testing.T) {
	deep := func(depth int, value string) string {
		return strings.Repeat(`{"a":`, depth) + value + strings.Repeat("}", depth)
	}
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":{"c":[{"d":1,"e":2}]}}`, `{"b":{"c":[{"e":2,"d":1}]},"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"c":2}`, false},
		{`{"a":1,"b":2}`, `{"a":2,"b":1}`, false},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`[]`, `[1]`, false},
		{`{}`, `[]`, false},
		{`{"a":{}}`, `{"a":0}`, false},
		{`{"x":"1 \u0026 2","y":[{"\u00e9":"\u00e9\n"}]}`, `{"x":"1 & 2","y":[{"é":"é\u000a"}]}`, true},
		{`"\/"`, `"/"`, true},
		{`"\ud83d\ude00"`, `"😀"`, true},
		{`"\u0026amp;"`, `"&"`, false},
		{`"1"`, `1`, false},
		{`"a"`, `"b"`, false},
		{`1`, `1.0`, false},
		{`100`, `1e2`, false},
		{`100.0`, `1e2`, true},
		{`1200.00`, `12.0E+2`, true},
		{`0.1`, `1e-1`, true},
		{`0.0`, `-0.0e7`, true},
		{`0`, `-0`, true},
		{`1`, `-1`, false},
		{`1`, `10`, false},
		{`1e1`, `1e2`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`9007199254740993.0`, `9007199254740992.0`, false},
		{`1e99999999999999999999`, `1e99999999999999999999`, true},
		{`1e99999999999999999999`, `10e99999999999999999998`, false},
		{`null`, `{}`, false},
		{`true`, `false`, false},
		{`{"\u0061":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a":1,"a":2}`, `{"a":1,"a":2}`, true},
		{`{"a":1,"a":2}`, `{"a":2,"a":1}`, false},
		{ // Time must not double at each level.
			strings.Repeat(`{"a":`, 30) + `{"x":1,"y":2}` + strings.Repeat(`,"b":0,"c":0}`, 30),
			strings.Repeat(`{"a":`, 30) + `{"y":2,"x":1}` + strings.Repeat(`,"c":0,"b":0}`, 30), true,
		},
		{deep(30, `{"b":1,"c":2}`), deep(30, `{"c":2,"b":1}`), true},
		{deep(40, `{"b":1,"c":2}`), deep(40, `{"c":2,"b":1}`), false},
		{deep(30, `["\u0061",1.0]`), deep(30, `["a",1.00]`), true},
	} {
		if got := Equal([]byte(test.a), []byte(test.b)); got != test.want {
			t.Errorf("%s and %s: got %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

func FuzzEqual(f *testing.F) {
	f.Add([]byte(`{"a":[{"c":1,"b":2}],"d":{}}`), []byte(`{"d":{},"a":[{"b":2,"c":1}]}`), uint64(1))
	f.Fuzz(func(t *testing.T, a, b []byte, seed uint64) {
		a, errA := Compact(a)
		b, errB := Compact(b)
		if errA != nil || errB != nil {
			return
		}
		var valueA, valueB any
		if json.Unmarshal(a, &valueA) != nil || json.Unmarshal(b, &valueB) != nil {
			return // a number is beyond the range of float64
		}
		got := Equal(a, b)
		if got != Equal(b, a) {
			t.Errorf("%s and %s: the order of the arguments matters", a, b)
		}
		if got && !reflect.DeepEqual(valueA, valueB) {
			t.Errorf("%s and %s are not equal", a, b)
		}
		members, err := Split(a)
		if err != nil {
			return
		}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(members),
			func(i, j int) { members[i], members[j] = members[j], members[i] })
		if !Equal(a, Join(members)) {
			t.Errorf("%s: not equal to %s", a, Join(members))
		}
	})
}
