package protobody

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// varintField encodes a numeric field.
func varintField(number int, value int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), uint64(value))
}

// bytesField encodes a field with a length prefix: text, or the fields of a message.
func bytesField[T string | []byte](number int, values ...T) []byte {
	var data []byte
	for _, v := range values {
		data = append(data, v...)
	}
	out := binary.AppendUvarint(nil, uint64(number)<<3|uint64(wireBytes))
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

// body encodes an object in the way clients send it.
func body(apiVersion, kind string, fields ...[]byte) []byte {
	typeMeta := bytesField(1, bytesField(1, apiVersion), bytesField(2, kind))
	return slices.Concat(magic, typeMeta, bytesField(2, fields...), bytesField(3, ""), bytesField(4, ""))
}

func encodedPod() []byte {
	meta := bytesField(1, bytesField(1, "a"), bytesField(8, ""), bytesField(11, bytesField(1, "app"), bytesField(2, "<web>")))
	requests := bytesField(2, bytesField(1, "cpu"), bytesField(2, bytesField(1, "100m")))
	port := bytesField(6, bytesField(1, ""), varintField(2, 0), varintField(3, 80))
	probe := bytesField(10, bytesField(1, bytesField(2, bytesField(1, "/"), bytesField(2, varintField(1, 1), varintField(2, 0), bytesField(3, "http")))), varintField(2, 0))
	container := bytesField(2, bytesField(1, "main"), bytesField(2, ""), port, bytesField(8, requests), probe)
	started := bytesField(7, varintField(1, 1700000000), varintField(2, 5))
	return body("v1", "Pod", meta, bytesField(2, container, varintField(4, 30)), bytesField(3, bytesField(1, "Running"), started))
}

func TestToJSONConvertsObject(t *testing.T) {
	const want = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"app":"<web>"}},` +
		`"spec":{"containers":[{"name":"main","ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"100m"}},` +
		`"livenessProbe":{"httpGet":{"path":"/","port":"http"}}}],"terminationGracePeriodSeconds":30},` +
		`"status":{"phase":"Running","startTime":"2023-11-14T22:13:20Z"}}`
	got, err := ToJSON(encodedPod(), 1<<20)
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want\n%s", got, err, want)
	}
}

// testMessages returns a table that contains the kind Thing of v1 with the given fields,
// and the message Part.
func testMessages(t testing.TB, fields string) *messageTable {
	t.Helper()
	all, err := parse("package x.v1\nThing v1\n\t" + strings.ReplaceAll(fields, "; ", "\n\t") + "\nPart\n\t1 name string\n\t2 size! int32\n\t3 part *Part\n")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFieldsMatchEncodingJSON(t *testing.T) {
	join := slices.Concat[[]byte]
	for _, c := range []struct {
		fields string
		data   []byte
		want   string
	}{
		{"1 a bool; 2 b! bool", nil, `"b":false`},
		{"1 a bool; 2 b! bool", join(varintField(1, 0), varintField(2, 1)), `"b":true`},
		{"1 a int32; 2 b! int32; 3 c *int32; 4 d! *int32", nil, `"b":0,"d":null`},
		{"1 a int32; 2 b int32; 3 c *int32", join(varintField(1, -5), varintField(2, 1<<32+7), varintField(3, 0)), `"a":-5,"b":7,"c":0`},
		{"1 a int64; 2 b int64", join(varintField(1, math.MinInt64), varintField(2, math.MaxInt64)), `"a":-9223372036854775808,"b":9223372036854775807`},
		{"1 a string; 2 b! string; 3 c *string", nil, `"b":""`},
		{"1 a string; 2 b! string; 3 c *string", join(bytesField(1, ""), bytesField(2, "\"\n<é"), bytesField(3, "")), `"b":"\"\n<é","c":""`},
		{"1 a string; 2 b int32", join(bytesField(1, "x"), varintField(2, 1), bytesField(1, "y"), varintField(2, 2)), `"a":"y","b":2`},
		{"1 a bytes; 2 b! bytes; 3 c! bytes", join(bytesField(1, ""), bytesField(3, "")), `"b":null,"c":""`},
		{"1 a bytes", bytesField(1, "\xff\x00"), `"a":"/wA="`},

		{"1 a time; 2 b? time; 3 c *time; 4 d! *time", nil, `"a":null,"d":null`},
		{"1 a time; 2 b? time; 3 c *time", join(bytesField(1, ""), bytesField(2, ""), bytesField(3, "")), `"a":null,"c":null`},
		{"1 a time; 2 b? time", join(bytesField(1, varintField(1, 1), varintField(2, 999)), bytesField(2, varintField(1, 0))), `"a":"1970-01-01T00:00:01Z","b":"1970-01-01T00:00:00Z"`},
		{"1 a time", bytesField(1, varintField(1, -62135596800)), `"a":null`},
		{"1 a microtime", bytesField(1, varintField(1, 1), varintField(2, 1999)), `"a":"1970-01-01T00:00:01.000001Z"`},
		{"1 a quantity; 2 b quantity; 3 c *quantity", bytesField(2, bytesField(1, "1500m")), `"a":"0","b":"1500m"`},
		{"1 a intorstring; 2 b intorstring; 3 c *intorstring", bytesField(2, varintField(1, 1), varintField(2, 5), bytesField(3, "50%")), `"a":0,"b":"50%"`},
		{"1 a intorstring", bytesField(1, varintField(1, 0), varintField(2, 80), bytesField(3, "")), `"a":80`},
		{"1 a json; 2 b json; 3 c *json", bytesField(2, bytesField(1, ` {"x": [1.0]}`)), `"a":null,"b":{"x":[1.0]}`},
		{"1 a map[string]strings", join(bytesField(1, bytesField(1, "x"), bytesField(2, bytesField(1, "y"), bytesField(1, "z"))), bytesField(1, bytesField(1, "n"))), `"a":{"n":null,"x":["y","z"]}`},

		{"1 a []string; 2 b! []string", nil, `"b":null`},
		{"1 a []string; 2 b int32", join(bytesField(1, "x"), bytesField(1, ""), varintField(2, 1), bytesField(1, "z")), `"a":["x","","z"],"b":1`},
		{"1 a []int64", join(varintField(1, 1), varintField(1, -1)), `"a":[1,-1]`},
		{"1 a []int32; 2 b []int32", join(bytesField(1, []byte{1, 2}), bytesField(2, ""), varintField(1, 3)), `"a":[1,2,3]`}, // packed
		{"1 a map[string]string; 2 b! map[string]string", nil, `"b":null`},
		{"1 a map[string]string", join(bytesField(1, bytesField(1, "b"), bytesField(2, "1")), bytesField(1, ""), bytesField(1, bytesField(2, "2"), bytesField(1, "b"))), `"a":{"":"","b":"2"}`},
		{"1 a map[string]bytes; 2 b map[string]int32", join(bytesField(1, bytesField(1, "x")), bytesField(2, bytesField(1, "y"))), `"a":{"x":""},"b":{"y":0}`},

		{"1 a Part; 2 b *Part; 3 c! *Part; 4 . Part", nil, `"a":{"size":0},"c":null,"size":0`},
		{"1 a *Part; 2 . Part", join(bytesField(1, ""), bytesField(2, bytesField(1, "x"))), `"a":{"size":0},"name":"x","size":0`},
		{"1 a Part", join(bytesField(1, bytesField(1, "x")), bytesField(1, ""), bytesField(1, varintField(2, 3))), `"a":{"name":"x","size":3}`},
		{"1 a []Part; 2 b map[string]Part", join(bytesField(1, bytesField(1, "x")), bytesField(1, ""), bytesField(2, bytesField(2, varintField(2, 1)))), `"a":[{"name":"x","size":0},{"size":0}],"b":{"":{"size":1}}`},
		{"2 b int32; 1 a int32", join(varintField(1, 1), varintField(2, 2)), `"b":2,"a":1`},
	} {
		got, err := testMessages(t, c.fields).toJSON(body("v1", "Thing", c.data), 1<<20)
		want := `{"kind":"Thing","apiVersion":"v1",` + c.want + `}`
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want\n%s", c.fields, got, err, want)
		}
	}
}

func TestUnknownFieldsAreRejected(t *testing.T) {
	all := testMessages(t, "1 a int32; 2 part Part; 3 map map[string]string")
	for what, c := range map[string]struct {
		body []byte
		want string // if empty, the body must be accepted
	}{
		"a kind":                          {body("v2", "Thing"), `the kind "Thing" of "v2" is unknown`},
		"a message that is not an object": {body("v1", "Part"), `the kind "Part" of "v1" is unknown`},
		"a field":                         {body("v1", "Thing", varintField(9, 1)), "field 9 of x.v1.Thing is unknown"},
		"a field of a message":            {body("v1", "Thing", bytesField(2, bytesField(4, "x"))), "field 4 of x.v1.Part is unknown"},
		"a field of an entry":             {body("v1", "Thing", bytesField(3, bytesField(1, "x"), varintField(3, 1))), "field 3 of an entry of x.v1.Thing.map is unknown"},
		"8 bytes":                         {body("v1", "Thing", []byte{9<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 1}), "field 9 of x.v1.Thing is unknown"},
		"4 bytes":                         {body("v1", "Thing", []byte{9<<3 | 5, 1, 0, 0, 0}), "field 9 of x.v1.Thing is unknown"},
		"unset fields":                    {body("v1", "Thing", varintField(9, 0), bytesField(8, ""), []byte{9<<3 | 5, 0, 0, 0, 0, 9<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 0}), ""},
		"a field of the envelope":         {append(body("v1", "Thing"), varintField(7, 1)...), "field 7 of Unknown is unknown"},
	} {
		got, err := all.toJSON(c.body, 1<<20)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: got %v, want the fields ignored", what, err)
			}
			continue
		}
		e := listwatch.AsError(err)
		if !errors.Is(err, listwatch.Unsupported) || e.HTTPStatus() != 415 || !strings.Contains(e.Message, c.want) || !strings.Contains(e.Message, "ContentType") {
			t.Errorf("%s: got %s, %v, want a 415 with %s and the setting", what, got, err, c.want)
		}
	}
}

func TestMalformedBodiesAreRejected(t *testing.T) {
	all := testMessages(t, "1 a int32; 2 b []Part; 3 c time; 4 d json; 5 e intorstring; 6 f map[string]string; 7 g quantity")
	thing := func(fields ...[]byte) []byte { return body("v1", "Thing", fields...) }
	whole := thing(varintField(1, 1))
	for _, c := range []struct {
		body []byte
		want string
	}{
		{[]byte(`{"kind":"Thing"}`), `does not start with "k8s\x00"`},
		{magic, "kind or apiVersion is missing"},
		{body("", "Thing"), "kind or apiVersion is missing"},
		{body("v1", "\xff"), "not valid UTF-8"},
		{append(body("v1", "Thing"), bytesField(3, "gzip")...), `in encoding "gzip"`},
		{append(body("v1", "Thing"), bytesField(4, "application/json")...), `contains "application/json"`},
		{whole[:len(whole)-5], "ends within a field"},
		{append(whole, 0x80), "ends within a field"},
		{thing([]byte{1 << 3}), "ends within a field"},
		{thing([]byte{9<<3 | 1, 0}), "ends within a field"},
		{thing([]byte{0, 0}), "invalid field number 0"},
		{thing(binary.AppendUvarint(nil, 1<<60)), "invalid field number"},
		{thing(slices.Repeat([]byte{0xff}, 11)), "a number with more than 64 bits"},
		{thing([]byte{9<<3 | 3}), "field 9 has wire type 3"},
		{thing(bytesField(1, "x")), "field 1 has wire type 2"},
		{thing(varintField(2, 1)), "field 2 has wire type 0"},
		{thing(bytesField(2, bytesField(1, "\xff"))), "b: name: not valid UTF-8"},
		{thing(bytesField(3, varintField(1, math.MaxInt64))), "c: not a time of RFC 3339"},
		{thing(bytesField(3, varintField(1, math.MinInt64))), "c: not a time of RFC 3339"},
		{thing(bytesField(4, bytesField(1, `{"a":`))), "d: incomplete JSON"},
		{thing(bytesField(5, varintField(1, 2))), "e: neither a number nor a string: 2"},
		{thing(bytesField(6, bytesField(1, "\xff"))), "f: not valid UTF-8"},
		{thing(bytesField(6, bytesField(1, "k"), bytesField(2, "\xff"))), `f: "k": not valid UTF-8`},
		{thing(bytesField(7, bytesField(1, "\xff"))), "g: not valid UTF-8"},
	} {
		got, err := all.toJSON(c.body, 1<<20)
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %s, %v, want Invalid with %s", c.body, got, err, c.want)
		}
	}
}

func TestJSONSizeIsLimited(t *testing.T) {
	all := testMessages(t, "1 parts []Part; 2 part *Part; 3 s string; 4 numbers []int32")
	for what, fields := range map[string][]byte{
		"messages that are larger as JSON": slices.Repeat(bytesField(1, ""), 100),
		"text that is larger as JSON":      bytesField(3, strings.Repeat("\x00", 100)),
		"numbers":                          bytesField(4, slices.Repeat([]byte{1}, 500)),
	} {
		b := body("v1", "Thing", fields)
		whole, err := all.toJSON(b, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.toJSON(b, int64(len(whole))); err != nil {
			t.Errorf("%s: got %v, want success at exactly the limit", what, err)
		}
		if _, err := all.toJSON(b, int64(len(whole))-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want ErrTooLarge", what, err)
		}
	}
	nested := []byte{}
	for range maxDepth {
		nested = bytesField(3, nested)
	}
	if got, err := all.toJSON(body("v1", "Thing", bytesField(2, nested)), 1<<20); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("got %s, %v, want a nesting error", got, err)
	}
}

// Merging the records must not take quadratic time.
func TestMessageInManyRecordsIsMerged(t *testing.T) {
	const n = 100_000
	got, err := testMessages(t, "1 part Part").toJSON(body("v1", "Thing", slices.Repeat(bytesField(1, varintField(2, 7)), n)), 1<<20)
	if want := `{"kind":"Thing","apiVersion":"v1","part":{"size":7}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func FuzzToJSON(f *testing.F) {
	f.Add(encodedPod())
	f.Add(body("apps/v1", "DeleteOptions", bytesField(2, bytesField(1, "uid")), bytesField(4, "Orphan"), bytesField(5, "All")))
	f.Add(body("coordination.k8s.io/v1", "Lease", bytesField(2, bytesField(1, "me"), varintField(2, 15), bytesField(3, varintField(1, 1700000000), varintField(2, 5000)))))
	f.Add(body("v1", "ConfigMap", bytesField(2, bytesField(1, "k"), bytesField(2, "v")), bytesField(3, bytesField(1, "b"), bytesField(2, "\xff"))))
	f.Add(body("apps/v1", "ControllerRevision", bytesField(2, bytesField(1, `{"a":[1]}`)), varintField(3, 1)))
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ToJSON(data, limit)
		if err != nil {
			return
		}
		var o struct{ Kind, APIVersion string }
		if err := json.Unmarshal(got, &o); err != nil || o.Kind == "" || o.APIVersion == "" || len(got) > limit {
			t.Errorf("got %d bytes, %v: %s", len(got), err, got)
		}
		if compact, err := rawjson.Compact(got); err != nil || string(compact) != string(got) {
			t.Errorf("not compact, %v: %s", err, got)
		}
	})
}

// BenchmarkToJSON converts a small pod.
func BenchmarkToJSON(b *testing.B) {
	pod := encodedPod()
	b.SetBytes(int64(len(pod)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ToJSON(pod, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
