package protobody

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/testkit"
	"google.golang.org/protobuf/encoding/protowire"
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
	out := binary.AppendUvarint(nil, uint64(number)<<3|uint64(protowire.BytesType))
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

// body encodes an object in the way clients send it.
func body(apiVersion, kind string, fields ...[]byte) []byte {
	typeMeta := bytesField(1, bytesField(1, apiVersion), bytesField(2, kind))
	return slices.Concat(magic, typeMeta, bytesField(2, fields...), bytesField(3, ""), bytesField(4, ""))
}

func encodedPod() []byte {
	meta := bytesField(1, bytesField(1, "a"), bytesField(8, ""),
		bytesField(11, bytesField(1, "app"), bytesField(2, "<web>")))
	requests := bytesField(2, bytesField(1, "cpu"), bytesField(2, bytesField(1, "100m")))
	port := bytesField(6, bytesField(1, ""), varintField(2, 0), varintField(3, 80))
	probe := bytesField(10,
		bytesField(1, bytesField(2, bytesField(1, "/"),
			bytesField(2, varintField(1, 1), varintField(2, 0), bytesField(3, "http")))), varintField(2, 0))
	container := bytesField(2, bytesField(1, "main"), bytesField(2, ""), port, bytesField(8, requests), probe)
	started := bytesField(7, varintField(1, 1700000000), varintField(2, 5))
	return body("v1", "Pod", meta, bytesField(2, container, varintField(4, 30)),
		bytesField(3, bytesField(1, "Running"), started))
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

func TestFieldsMatchEncodingJSON(t *testing.T) {
	join := slices.Concat[[]byte]
	meta := bytesField(1, bytesField(1, "a"))
	for _, c := range []struct {
		apiVersion, kind string
		data             []byte
		want             string
	}{
		{"v1", "ConfigMap", nil, `"metadata":{}`},
		{"v1", "ConfigMap", join(meta, bytesField(1, bytesField(3, "ns"))), `"metadata":{"name":"a","namespace":"ns"}`},
		{
			"v1", "ConfigMap", bytesField(2, bytesField(1, "\"\n<é"), bytesField(2, "\ufffd\\ufffd")),
			`"metadata":{},"data":{"\"\n<é":"�\\ufffd"}`,
		},
		{"v1", "ConfigMap", join(bytesField(2, bytesField(1, "b"), bytesField(2, "1")), bytesField(2, ""),
			bytesField(2, bytesField(2, "2"), bytesField(1, "b"))), `"metadata":{},"data":{"":"","b":"2"}`},
		{
			"v1", "ConfigMap", join(bytesField(3, bytesField(1, "b"), bytesField(2, "\xff\x00")), varintField(4, 0)),
			`"metadata":{},"immutable":false,"binaryData":{"b":"/wA="}`,
		},
		{
			"coordination.k8s.io/v1", "Lease",
			bytesField(2, varintField(2, -5), bytesField(3, varintField(1, 1), varintField(2, 1999))),
			`"metadata":{},"spec":{"leaseDurationSeconds":-5,"acquireTime":"1970-01-01T00:00:01.000001Z"}`,
		},
		{
			"coordination.k8s.io/v1", "Lease", bytesField(2, varintField(2, 1<<32+7), varintField(2, 3)),
			`"metadata":{},"spec":{"leaseDurationSeconds":3}`,
		},
		{
			"apps/v1", "ControllerRevision",
			join(bytesField(2, bytesField(1, ` {"x": [1.0]}`)), varintField(3, math.MinInt64)),
			`"metadata":{},"data":{"x":[1.0]},"revision":-9223372036854775808`,
		},
		{
			"policy/v1", "PodDisruptionBudget",
			bytesField(2, bytesField(1, varintField(1, 1), varintField(2, 5), bytesField(3, "50%"))),
			`"metadata":{},"spec":{"minAvailable":"50%"},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}`,
		},
		{
			"apps/v1", "DeleteOptions", join(varintField(1, 0), bytesField(5, "All")),
			`"gracePeriodSeconds":0,"dryRun":["All"]`,
		},
		{"demo.example.com/v1", "DeleteOptions", bytesField(2, bytesField(1, "u")), `"preconditions":{"uid":"u"}`},
	} {
		got, err := ToJSON(body(c.apiVersion, c.kind, c.data), 1<<20)
		want := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,%s}`, c.kind, c.apiVersion, c.want)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want\n%s", got, err, want)
		}
	}
}

func TestUnknownFieldsAreRejected(t *testing.T) {
	pod := func(fields ...[]byte) []byte { return body("v1", "Pod", fields...) }
	for what, c := range map[string]struct {
		body []byte
		want string // if empty, the body must be accepted
	}{
		"a kind":                          {body("v2", "Pod"), `the kind "Pod" of "v2" is unknown`},
		"a message that is not an object": {body("v1", "PodSpec"), `the kind "PodSpec" of "v1" is unknown`},
		"a field":                         {pod(varintField(9, 1)), "field 9 of core.v1.Pod is unknown"},
		"a field of a message": {
			pod(bytesField(2, bytesField(2, bytesField(90, "x")))),
			"field 90 of core.v1.Container is unknown",
		},
		"a field of an entry": {
			body("v1", "ConfigMap",
				bytesField(2, bytesField(1, "x"), varintField(3, 1))),
			"field 3 of an entry of core.v1.ConfigMap.data is unknown",
		},
		"8 bytes": {
			pod([]byte{9<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 1}),
			"field 9 of core.v1.Pod is unknown",
		},
		"4 bytes": {pod([]byte{9<<3 | 5, 1, 0, 0, 0}), "field 9 of core.v1.Pod is unknown"},
		"a group": {pod([]byte{9<<3 | 3, 9<<3 | 4}), "field 9 of core.v1.Pod is unknown"},
		"unset fields": {pod(varintField(9, 0), bytesField(8, ""),
			[]byte{9<<3 | 5, 0, 0, 0, 0, 9<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 0}), ""},
		"a field of the envelope": {
			append(pod(), varintField(7, 1)...),
			"field 7 of runtime.Unknown is unknown",
		},
		"a field of the type": {
			append(slices.Clone(magic), bytesField(1, bytesField(3, "x"))...),
			"field 3 of runtime.TypeMeta is unknown",
		},
	} {
		got, err := ToJSON(c.body, 1<<20)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: got %v, want the fields ignored", what, err)
			}
			continue
		}
		e := testkit.WantStatus(t, what, err, 415)
		if e.Code != listwatch.Unsupported {
			t.Errorf("%s: got %s, %v, want code Unsupported", what, got, err)
		}
		for _, want := range []string{c.want, "ContentType"} { // the setting of the client
			if !strings.Contains(e.Message, want) {
				t.Errorf("%s: got %q, want %q in it", what, e.Message, want)
			}
		}
	}
}

func TestMalformedBodiesAreRejected(t *testing.T) {
	pod := func(fields ...[]byte) []byte { return body("v1", "Pod", fields...) }
	whole := pod(bytesField(1, bytesField(1, "a")))
	container := func(fields ...[]byte) []byte { return pod(bytesField(2, bytesField(2, fields...))) }
	started := func(seconds int64) []byte { return pod(bytesField(3, bytesField(7, varintField(1, seconds)))) }
	for _, c := range []struct {
		body []byte
		want string
	}{
		{[]byte(`{"kind":"Pod"}`), `does not start with "k8s\x00"`},
		{magic, "kind or apiVersion is missing"},
		{body("", "Pod"), "kind or apiVersion is missing"},
		{body("a/b/v1", "DeleteOptions"), `apiVersion "a/b/v1"`},
		{body("a/", "DeleteOptions"), `apiVersion "a/"`},
		{body("v1", "\xff"), "not valid UTF-8"},
		{append(body("v1", "Pod"), bytesField(3, "gzip")...), `in encoding "gzip"`},
		{append(body("v1", "Pod"), bytesField(4, "application/json")...), `contains "application/json"`},
		{whole[:len(whole)-5], "unexpected EOF"},
		{append(whole, 0x80), "unexpected EOF"},
		{pod([]byte{1 << 3}), "unexpected EOF"},
		{pod([]byte{9<<3 | 1, 0}), "unexpected EOF"},
		{pod([]byte{0, 0}), "invalid field number"},
		{pod(binary.AppendUvarint(nil, 1<<60)), "invalid field number"},
		{pod(slices.Repeat([]byte{0xff}, 11)), "variable length integer overflow"},
		{pod(varintField(1, 1)), "wrong wireType = 0 for field ObjectMeta"},
		{pod(bytesField(2, bytesField(4, "x"))), "wrong wireType = 2 for field TerminationGracePeriodSeconds"},
		{container(bytesField(1, "\xff")), "not valid UTF-8"},
		{started(math.MaxInt64), "status: startTime: not a time of RFC 3339"},
		{started(math.MinInt64), "status: startTime: not a time of RFC 3339"},
		{body("apps/v1", "ControllerRevision", bytesField(2, bytesField(1, `{"a":`))), "unexpected end of JSON"},
		{
			body("policy/v1", "PodDisruptionBudget", bytesField(2, bytesField(1, varintField(1, 2)))),
			"impossible IntOrString.Type",
		},
		{body("apps/v1", "ControllerRevision", bytesField(2, bytesField(1, "{\"\xff\":1}"))), "not valid UTF-8"},
		{body("v1", "ConfigMap", bytesField(2, bytesField(1, "\xff"))), "not valid UTF-8"},
		{body("v1", "ConfigMap", bytesField(2, bytesField(1, "k"), bytesField(2, "\\\xff"))), "not valid UTF-8"},
		{
			container(bytesField(8, bytesField(2, bytesField(1, "cpu"), bytesField(2, bytesField(1, "\xff"))))),
			"quantities must match",
		},
	} {
		got, err := ToJSON(c.body, 1<<20)
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %s, %v, want Invalid with %s", c.body, got, err, c.want)
		}
	}
}

func TestJSONSizeIsLimited(t *testing.T) {
	for what, b := range map[string][]byte{
		"messages that are larger as JSON": body("v1", "Pod", bytesField(2, slices.Repeat(bytesField(2, ""), 100))),
		"text that is larger as JSON": body("v1", "ConfigMap",
			bytesField(2, bytesField(2, strings.Repeat("\x00", 100)))),
		"numbers": body("v1", "Pod",
			bytesField(2, bytesField(14, bytesField(4, slices.Repeat([]byte{1}, 500))))),
	} {
		whole, err := ToJSON(b, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ToJSON(b, int64(len(whole))); err != nil {
			t.Errorf("%s: got %v, want success at exactly the limit", what, err)
		}
		if _, err := ToJSON(b, int64(len(whole))-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want ErrTooLarge", what, err)
		}
	}
}

// A body can contain a million messages of 2 bytes each, which must not exhaust the memory.
func TestHostileBodyNeedsLittleMemory(t *testing.T) {
	const limit = 1 << 20
	b := body("v1", "Pod", bytesField(2, slices.Repeat(bytesField(2, ""), limit)))
	result := testing.Benchmark(func(tb *testing.B) {
		for tb.Loop() {
			if _, err := ToJSON(b, limit); !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v, want ErrTooLarge", err)
			}
		}
	})
	if n := result.AllocedBytesPerOp(); n > 8*limit {
		t.Errorf("allocated %d bytes", n)
	}
}

// If the JSON of an object is within the limit, the decoded object must be within the memory limit.
func TestMemoryLimitExceedsJSONLimit(t *testing.T) {
	goTypes := map[*message]reflect.Type{}
	for typ, m := range kinds().messages {
		goTypes[m] = typ
	}
	for _, owner := range kinds().messages {
		for _, f := range owner.fields {
			typ, ok := goTypes[f.message]
			if !ok || f.allocated == 0 || f.message.fields == nil {
				continue
			}
			empty, err := json.Marshal(reflect.New(typ).Interface())
			if err != nil {
				t.Fatal(err)
			}
			size := len(empty) + len(",")
			if isPointer(goTypes[owner], f.name) {
				size += len(f.name) + len(`"":`)
			}
			if ratio := int(f.allocated+scalarSize) / size; ratio > memoryRatio {
				t.Errorf("%s.%s: decoded, it takes %d times the memory of its JSON %s", owner.name, f.name,
					ratio, empty)
			}
		}
	}
}

// isPointer reports whether the struct t has a pointer for the member with the given name.
func isPointer(t reflect.Type, name string) bool {
	for i := 0; t != nil && i < t.NumField(); i++ {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type.Kind() == reflect.Pointer
		}
	}
	return false
}

// Merging the records must not take quadratic time.
func TestMessageInManyRecordsIsMerged(t *testing.T) {
	const n = 100_000
	got, err := ToJSON(body("v1", "ConfigMap", slices.Repeat(bytesField(1, bytesField(1, "a")), n)), 1<<20)
	if want := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func FuzzToJSON(f *testing.F) {
	f.Add(encodedPod())
	f.Add(body("apps/v1", "DeleteOptions", bytesField(2, bytesField(1, "uid")), bytesField(4, "Orphan"),
		bytesField(5, "All")))
	f.Add(body("coordination.k8s.io/v1", "Lease",
		bytesField(2, bytesField(1, "me"), varintField(2, 15),
			bytesField(3, varintField(1, 1700000000), varintField(2, 5000)))))
	f.Add(body("v1", "ConfigMap", bytesField(2, bytesField(1, "k"), bytesField(2, "v")),
		bytesField(3, bytesField(1, "b"), bytesField(2, "\xff"))))
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
