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

// varint is a field that is a number.
func varint(number int, value int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), uint64(value))
}

// sized is a field that has a length: text, or the fields of a message.
func sized[T string | []byte](number int, values ...T) []byte {
	var data []byte
	for _, v := range values {
		data = append(data, v...)
	}
	out := binary.AppendUvarint(nil, uint64(number)<<3|uint64(wireBytes))
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

// body is an object as clients send it.
func body(apiVersion, kind string, fields ...[]byte) []byte {
	typeMeta := sized(1, sized(1, apiVersion), sized(2, kind))
	return slices.Concat(magic, typeMeta, sized(2, fields...), sized(3, ""), sized(4, ""))
}

func onePod() []byte {
	meta := sized(1, sized(1, "a"), sized(8, ""), sized(11, sized(1, "app"), sized(2, "<web>")))
	requests := sized(2, sized(1, "cpu"), sized(2, sized(1, "100m")))
	port := sized(6, sized(1, ""), varint(2, 0), varint(3, 80))
	probe := sized(10, sized(1, sized(2, sized(1, "/"), sized(2, varint(1, 1), varint(2, 0), sized(3, "http")))), varint(2, 0))
	container := sized(2, sized(1, "main"), sized(2, ""), port, sized(8, requests), probe)
	started := sized(7, varint(1, 1700000000), varint(2, 5))
	return body("v1", "Pod", meta, sized(2, container, varint(4, 30)), sized(3, sized(1, "Running"), started))
}

func TestAnObjectComesOutAsItsJSON(t *testing.T) {
	const want = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"app":"<web>"}},` +
		`"spec":{"containers":[{"name":"main","ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"100m"}},` +
		`"livenessProbe":{"httpGet":{"path":"/","port":"http"}}}],"terminationGracePeriodSeconds":30},` +
		`"status":{"phase":"Running","startTime":"2023-11-14T22:13:20Z"}}`
	got, err := ToJSON(onePod(), 1<<20)
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want\n%s", got, err, want)
	}
}

// thing returns a table of one kind, Thing of v1, that has these fields, and of Part, which fields may be of.
func thing(t testing.TB, fields string) *table {
	t.Helper()
	all, err := parse("package x.v1\nThing v1\n\t" + strings.ReplaceAll(fields, "; ", "\n\t") + "\nPart\n\t1 name string\n\t2 size! int32\n\t3 part *Part\n")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFieldsComeOutAsEncodingJSONHasThem(t *testing.T) {
	join := slices.Concat[[]byte]
	for _, c := range []struct {
		fields string
		data   []byte
		want   string
	}{
		{"1 a bool; 2 b! bool", nil, `"b":false`},
		{"1 a bool; 2 b! bool", join(varint(1, 0), varint(2, 1)), `"b":true`},
		{"1 a int32; 2 b! int32; 3 c *int32; 4 d! *int32", nil, `"b":0,"d":null`},
		{"1 a int32; 2 b int32; 3 c *int32", join(varint(1, -5), varint(2, 1<<32+7), varint(3, 0)), `"a":-5,"b":7,"c":0`},
		{"1 a int64; 2 b int64", join(varint(1, math.MinInt64), varint(2, math.MaxInt64)), `"a":-9223372036854775808,"b":9223372036854775807`},
		{"1 a string; 2 b! string; 3 c *string", nil, `"b":""`},
		{"1 a string; 2 b! string; 3 c *string", join(sized(1, ""), sized(2, "\"\n<é"), sized(3, "")), `"b":"\"\n<é","c":""`},
		{"1 a string; 2 b int32", join(sized(1, "x"), varint(2, 1), sized(1, "y"), varint(2, 2)), `"a":"y","b":2`},
		{"1 a bytes; 2 b! bytes; 3 c! bytes", join(sized(1, ""), sized(3, "")), `"b":null,"c":""`},
		{"1 a bytes", sized(1, "\xff\x00"), `"a":"/wA="`},

		{"1 a time; 2 b? time; 3 c *time; 4 d! *time", nil, `"a":null,"d":null`},
		{"1 a time; 2 b? time; 3 c *time", join(sized(1, ""), sized(2, ""), sized(3, "")), `"a":null,"c":null`},
		{"1 a time; 2 b? time", join(sized(1, varint(1, 1), varint(2, 999)), sized(2, varint(1, 0))), `"a":"1970-01-01T00:00:01Z","b":"1970-01-01T00:00:00Z"`},
		{"1 a time", sized(1, varint(1, -62135596800)), `"a":null`},
		{"1 a microtime", sized(1, varint(1, 1), varint(2, 1999)), `"a":"1970-01-01T00:00:01.000001Z"`},
		{"1 a quantity; 2 b quantity; 3 c *quantity", sized(2, sized(1, "1500m")), `"a":"0","b":"1500m"`},
		{"1 a intorstring; 2 b intorstring; 3 c *intorstring", sized(2, varint(1, 1), varint(2, 5), sized(3, "50%")), `"a":0,"b":"50%"`},
		{"1 a intorstring", sized(1, varint(1, 0), varint(2, 80), sized(3, "")), `"a":80`},
		{"1 a json; 2 b json; 3 c *json", sized(2, sized(1, ` {"x": [1.0]}`)), `"a":null,"b":{"x":[1.0]}`},
		{"1 a map[string]strings", join(sized(1, sized(1, "x"), sized(2, sized(1, "y"), sized(1, "z"))), sized(1, sized(1, "n"))), `"a":{"n":null,"x":["y","z"]}`},

		{"1 a []string; 2 b! []string", nil, `"b":null`},
		{"1 a []string; 2 b int32", join(sized(1, "x"), sized(1, ""), varint(2, 1), sized(1, "z")), `"a":["x","","z"],"b":1`},
		{"1 a []int64", join(varint(1, 1), varint(1, -1)), `"a":[1,-1]`},
		{"1 a []int32; 2 b []int32", join(sized(1, []byte{1, 2}), sized(2, ""), varint(1, 3)), `"a":[1,2,3]`}, // packed
		{"1 a map[string]string; 2 b! map[string]string", nil, `"b":null`},
		{"1 a map[string]string", join(sized(1, sized(1, "b"), sized(2, "1")), sized(1, ""), sized(1, sized(2, "2"), sized(1, "b"))), `"a":{"":"","b":"2"}`},
		{"1 a map[string]bytes; 2 b map[string]int32", join(sized(1, sized(1, "x")), sized(2, sized(1, "y"))), `"a":{"x":""},"b":{"y":0}`},

		{"1 a Part; 2 b *Part; 3 c! *Part; 4 . Part", nil, `"a":{"size":0},"c":null,"size":0`},
		{"1 a *Part; 2 . Part", join(sized(1, ""), sized(2, sized(1, "x"))), `"a":{"size":0},"name":"x","size":0`},
		{"1 a Part", join(sized(1, sized(1, "x")), sized(1, ""), sized(1, varint(2, 3))), `"a":{"name":"x","size":3}`},
		{"1 a []Part; 2 b map[string]Part", join(sized(1, sized(1, "x")), sized(1, ""), sized(2, sized(2, varint(2, 1)))), `"a":[{"name":"x","size":0},{"size":0}],"b":{"":{"size":1}}`},
		{"2 b int32; 1 a int32", join(varint(1, 1), varint(2, 2)), `"b":2,"a":1`},
	} {
		got, err := thing(t, c.fields).json(body("v1", "Thing", c.data), 1<<20)
		want := `{"kind":"Thing","apiVersion":"v1",` + c.want + `}`
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want\n%s", c.fields, got, err, want)
		}
	}
}

func TestWhatWouldBeLostIsRefused(t *testing.T) {
	all := thing(t, "1 a int32; 2 part Part; 3 map map[string]string")
	for what, c := range map[string]struct {
		body []byte
		want string // empty: it is read
	}{
		"a kind":                     {body("v2", "Thing"), `the kind "Thing" of "v2" is not known here`},
		"a part that is no object":   {body("v1", "Part"), `the kind "Part" of "v1" is not known here`},
		"a field":                    {body("v1", "Thing", varint(9, 1)), "x.v1.Thing has no field 9 that is known here"},
		"a field of a message":       {body("v1", "Thing", sized(2, sized(4, "x"))), "x.v1.Part has no field 4 that is known here"},
		"a field of an entry":        {body("v1", "Thing", sized(3, sized(1, "x"), varint(3, 1))), "an entry of x.v1.Thing.map has no field 3 that is known here"},
		"8 bytes":                    {body("v1", "Thing", []byte{9<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 1}), "x.v1.Thing has no field 9 that is known here"},
		"4 bytes":                    {body("v1", "Thing", []byte{9<<3 | 5, 1, 0, 0, 0}), "x.v1.Thing has no field 9 that is known here"},
		"fields that are not set":    {body("v1", "Thing", varint(9, 0), sized(8, ""), []byte{9<<3 | 5, 0, 0, 0, 0, 9<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 0}), ""},
		"what only the envelope has": {append(body("v1", "Thing"), varint(7, 1)...), "Unknown has no field 7 that is known here"},
	} {
		got, err := all.json(c.body, 1<<20)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: got %v, want them dropped", what, err)
			}
			continue
		}
		e := listwatch.AsError(err)
		if !errors.Is(err, listwatch.Unsupported) || e.HTTPStatus() != 415 || !strings.Contains(e.Message, c.want) || !strings.Contains(e.Message, "ContentType") {
			t.Errorf("%s: got %s, %v, want a 415 that says %s, and what to set", what, got, err, c.want)
		}
	}
}

func TestBrokenBodiesAreRefused(t *testing.T) {
	all := thing(t, "1 a int32; 2 b []Part; 3 c time; 4 d json; 5 e intorstring; 6 f map[string]string; 7 g quantity")
	thing := func(fields ...[]byte) []byte { return body("v1", "Thing", fields...) }
	whole := thing(varint(1, 1))
	for _, c := range []struct {
		body []byte
		want string
	}{
		{[]byte(`{"kind":"Thing"}`), `does not begin with "k8s\x00"`},
		{magic, "says no kind"},
		{body("", "Thing"), "says no kind, or no apiVersion"},
		{body("v1", "\xff"), "not valid UTF-8"},
		{append(body("v1", "Thing"), sized(3, "gzip")...), `in encoding "gzip"`},
		{append(body("v1", "Thing"), sized(4, "application/json")...), `has "application/json"`},
		{whole[:len(whole)-5], "ends within a field"},
		{append(whole, 0x80), "ends within a field"},
		{thing([]byte{1 << 3}), "ends within a field"},
		{thing([]byte{9<<3 | 1, 0}), "ends within a field"},
		{thing([]byte{0, 0}), "a field numbered 0"},
		{thing(binary.AppendUvarint(nil, 1<<60)), "a field numbered"},
		{thing(slices.Repeat([]byte{0xff}, 11)), "a number of more than 64 bits"},
		{thing([]byte{9<<3 | 3}), "field 9 has wire type 3"},
		{thing(sized(1, "x")), "field 1 has wire type 2"},
		{thing(varint(2, 1)), "field 2 has wire type 0"},
		{thing(sized(2, sized(1, "\xff"))), "b: name: not valid UTF-8"},
		{thing(sized(3, varint(1, math.MaxInt64))), "c: no time of RFC 3339"},
		{thing(sized(3, varint(1, math.MinInt64))), "c: no time of RFC 3339"},
		{thing(sized(4, sized(1, `{"a":`))), "d: unexpected end of JSON"},
		{thing(sized(5, varint(1, 2))), "e: neither a number nor a string: 2"},
		{thing(sized(6, sized(1, "\xff"))), "f: not valid UTF-8"},
		{thing(sized(6, sized(1, "k"), sized(2, "\xff"))), `f: "k": not valid UTF-8`},
		{thing(sized(7, sized(1, "\xff"))), "g: not valid UTF-8"},
	} {
		got, err := all.json(c.body, 1<<20)
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %s, %v, want it invalid: %s", c.body, got, err, c.want)
		}
	}
}

func TestTheJSONIsBounded(t *testing.T) {
	all := thing(t, "1 parts []Part; 2 part *Part; 3 s string; 4 numbers []int32")
	for what, fields := range map[string][]byte{
		"messages that are larger as JSON": slices.Repeat(sized(1, ""), 100),
		"text that is larger as JSON":      sized(3, strings.Repeat("\x00", 100)),
		"numbers":                          sized(4, slices.Repeat([]byte{1}, 500)),
	} {
		b := body("v1", "Thing", fields)
		whole, err := all.json(b, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.json(b, int64(len(whole))); err != nil {
			t.Errorf("%s: got %v, want what is as large as the limit", what, err)
		}
		if _, err := all.json(b, int64(len(whole))-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want it too large", what, err)
		}
	}
	nested := []byte{}
	for range maxDepth {
		nested = sized(3, nested)
	}
	if got, err := all.json(body("v1", "Thing", sized(2, nested)), 1<<20); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("got %s, %v, want it nested too deep", got, err)
	}
}

// A message in many records is put together from them; that must not cost the square of their number.
func TestAMessageInManyRecordsIsOne(t *testing.T) {
	const n = 100_000
	got, err := thing(t, "1 part Part").json(body("v1", "Thing", slices.Repeat(sized(1, varint(2, 7)), n)), 1<<20)
	if want := `{"kind":"Thing","apiVersion":"v1","part":{"size":7}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(onePod())
	f.Add(body("apps/v1", "DeleteOptions", sized(2, sized(1, "uid")), sized(4, "Orphan"), sized(5, "All")))
	f.Add(body("coordination.k8s.io/v1", "Lease", sized(2, sized(1, "me"), varint(2, 15), sized(3, varint(1, 1700000000), varint(2, 5000)))))
	f.Add(body("v1", "ConfigMap", sized(2, sized(1, "k"), sized(2, "v")), sized(3, sized(1, "b"), sized(2, "\xff"))))
	f.Add(body("apps/v1", "ControllerRevision", sized(2, sized(1, `{"a":[1]}`)), varint(3, 1)))
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

// BenchmarkJSON reads a small pod.
func BenchmarkJSON(b *testing.B) {
	pod := onePod()
	b.SetBytes(int64(len(pod)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ToJSON(pod, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
