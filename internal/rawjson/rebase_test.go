package rawjson

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestRebaseAppliesOnlyTheChanges(t *testing.T) {
	for _, test := range []struct{ name, doc, before, after, want string }{
		{"nothing", `{"a":1e400,"b":2}`, `{"a":1}`, `{"a":1}`, `{"a":1e400,"b":2}`},
		{"a member", `{"b":2,"a":1.0}`, `{"a":1}`, `{"a":3}`, `{"b":2,"a":3}`},
		{"a new member", `{"b":2}`, `{}`, `{"a":3}`, `{"b":2,"a":3}`},
		{"a member that the type did not show", `{"a":false,"b":2}`, `{}`, `{"a":true}`, `{"a":true,"b":2}`},
		{
			"an object that the type did not show", `{"s":{"x":1,"n":0}}`, `{}`, `{"s":{"n":3,"m":4}}`,
			`{"s":{"x":1,"n":3,"m":4}}`,
		},
		{"an array that the type did not show", `{"s":[{"x":1}]}`, `{}`, `{"s":{"n":3}}`, `{"s":{"n":3}}`},
		{"a removed member", `{"a":1,"b":2}`, `{"a":1}`, `{}`, `{"b":2}`},
		{"the last member", `{"a":1}`, `{"a":1}`, `{}`, `{}`},
		{
			"within an object", `{"s":{"x":9007199254740993,"n":1},"t":0}`, `{"s":{"n":1}}`, `{"s":{"n":2}}`,
			`{"s":{"x":9007199254740993,"n":2},"t":0}`,
		},
		{"an object that was removed", `{"s":{"x":1,"n":1},"t":0}`, `{"s":{"n":1}}`, `{"s":null}`, `{"s":null,"t":0}`},
		{"an object that was null", `{"s":null}`, `{"s":null}`, `{"s":{"n":2}}`, `{"s":{"n":2}}`},
		{"an array as a whole", `{"s":[{"x":1,"n":1}]}`, `{"s":[{"n":1}]}`, `{"s":[{"n":2}]}`, `{"s":[{"n":2}]}`},
		{"a zero that the document lacks", `{"b":2}`, `{"a":0,"b":2}`, `{"a":0,"b":3}`, `{"b":3}`},
		{"an escaped name", `{"\u0061":1,"b":2}`, `{"a":1}`, `{"a":2}`, `{"\u0061":2,"b":2}`},
		{"another value", `1`, `2`, `{"a":1}`, `{"a":1}`},
	} {
		if got, err := Rebase([]byte(test.doc), []byte(test.before), []byte(test.after)); err != nil ||
			string(got) != test.want {
			t.Errorf("%s: got %s, error %v, want %s", test.name, got, err, test.want)
		}
	}
	if got, err := Rebase([]byte(`{"s":{"a":1,"a":2}}`), []byte(`{"s":{"a":2}}`), []byte(`{"s":{"a":3}}`)); err == nil {
		t.Errorf("a duplicate member: got %s, want an error", got)
	}
}

// FuzzRebase passes the same document as doc and as before, like a writer that knows all members.
// The result must then equal after.
func FuzzRebase(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1},"c":[1]}`), []byte(`{"a":{"d":1},"c":[2]}`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		before, errBefore := Compact(before)
		after, errAfter := Compact(after)
		if errBefore != nil || errAfter != nil {
			return
		}
		got, err := Rebase(before, before, after)
		if err != nil {
			if Inspect(before).Dropped == nil && Inspect(after).Dropped == nil {
				t.Errorf("%s from %s: %v", after, before, err)
			}
			return
		}
		var gotValue, wantValue any
		if err := json.Unmarshal(got, &gotValue); err != nil {
			if json.Unmarshal(after, &wantValue) != nil {
				return // a number is beyond the range of float64
			}
			t.Fatalf("%s from %s: got %s: %v", after, before, got, err)
		}
		if err := json.Unmarshal(after, &wantValue); err == nil && !reflect.DeepEqual(gotValue, wantValue) {
			t.Errorf("%s from %s: got %s", after, before, got)
		}
	})
}
