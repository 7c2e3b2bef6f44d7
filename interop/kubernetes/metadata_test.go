package kubernetes

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/memory"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// completeMetadata has every member of ObjectMeta, and unknown members.
const completeMetadata = `{
	"name": "a", "generateName": "a-", "namespace": "n", "selfLink": "/", "uid": "u", "resourceVersion": "0", "generation": 1,
	"creationTimestamp": "2026-01-02T15:04:05Z", "deletionTimestamp": "2026-01-02T15:04:05.123+01:00", "deletionGracePeriodSeconds": 30,
	"labels": {"a": "b", "c.d/e": ""}, "annotations": {"f": "g"}, "finalizers": ["h.i/j", "k"],
	"ownerReferences": [
		{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "p", "controller": true, "blockOwnerDeletion": false},
		{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "r", "more": 1}
	],
	"managedFields": [
		{"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2026-01-02T15:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}, "subresource": "status"}
	],
	"more": {"labels": "s"}
}`

// oddValues holds JSON values that replace members of metadata. Most of them have a wrong type.
var oddValues = []string{
	`null`, `true`, `false`, `0`, `-0`, `7`, `-7`, `1.0`, `1.5`, `1e2`, `1e400`, `9223372036854775807`,
	`9223372036854775808`, `-9223372036854775809`,
	`""`, `"x"`, `"0"`, `"true"`, `"2026-01-02T15:04:05Z"`, `"2026-01-02T15:04:05,5Z"`, `"2026-01-02T15:04:05+23:59"`,
	`"2026-01-02T15:04:05+24:00"`,
	`"2026-01-02 15:04:05Z"`, `"2026-02-30T15:04:05Z"`, `"2026-01-02T24:00:00Z"`, `"2026-01-02T15:04:05"`,
	`"2026-01-02T5:04:05Z"`, `"2026-01-02t15:04:05z"`,
	`[]`, `[null]`, `[7]`, `["x"]`, `[[]]`, `[{}]`, `[{"name": 7}]`, `[{"controller": 1}]`, `[{"time": "x"}]`,
	`{}`, `{"a": null}`, `{"a": 7}`, `{"a": "b"}`, `{"a": {}}`, `{"name": "x"}`,
}

// metadataWithOddValue returns completeMetadata with one odd value, and with some random
// members removed.
func metadataWithOddValue(t testing.TB, random *rand.Rand) map[string]any {
	t.Helper()
	var meta map[string]any
	if err := json.Unmarshal([]byte(completeMetadata), &meta); err != nil {
		t.Fatal(err)
	}
	replaceWithOddValue(meta, random)
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		if random.IntN(10) == 0 {
			delete(meta, name)
		}
	}
	return meta
}

// replaceWithOddValue replaces one random value inside o, if o is not empty.
func replaceWithOddValue(o map[string]any, random *rand.Rand) {
	var places []func(any)
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				places = append(places, func(value any) { v[name] = value })
				find(v[name])
			}
		case []any:
			for i := range v {
				places = append(places, func(value any) { v[i] = value })
				find(v[i])
			}
		}
	}
	find(o)
	if len(places) > 0 {
		places[random.IntN(len(places))](json.RawMessage(oddValues[random.IntN(len(oddValues))]))
	}
}

// Property: the store accepts exactly the metadata that a typed client can decode, except
// for metadata that breaks other rules.
func TestMetadataIsAcceptedIfClientsDecodeIt(t *testing.T) {
	r, _ := kubeapi.FindResource(kubeapi.DefaultResources(), "configmaps")
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err != nil {
		t.Fatal(err)
	}
	created, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a","namespace":"n"}}`))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	decode := scheme.Codecs.UniversalDeserializer()
	decodable := 0
	const runs = 20_000
	for range runs {
		meta := metadataWithOddValue(t, random)
		data := encodeConfigMap(t, meta)
		_, _, theirs := decode.Decode(data, nil, &corev1.ConfigMap{})
		if theirs == nil {
			decodable++
		}
		if _, ours := c.DryRun().Create(t.Context(), data); isBadRequest(ours) != (theirs != nil) &&
			!hasCreateVersion(meta) {
			t.Errorf("create %s:\nour error: %v\nclient-go's error: %v", data, ours, theirs)
		}
		change := func(*listwatch.Object) ([]byte, error) { return data, nil }
		_, ours := c.DryRun().Update(t.Context(), created.Key, listwatch.Preconditions{}, change)
		if isBadRequest(ours) != (theirs != nil) && !hasOtherKey(meta) {
			t.Errorf("update %s:\nour error: %v\nclient-go's error: %v", data, ours, theirs)
		}
	}
	if decodable < runs/20 || decodable > runs*19/20 {
		t.Errorf("%d of %d objects can be decoded, want between 5 and 95 %%", decodable, runs)
	}
}

func encodeConfigMap(t testing.TB, meta map[string]any) []byte {
	t.Helper()
	return testkit.Must(json.Marshal(map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta}))(t)
}

// isBadRequest reports whether err means that the object cannot be decoded. Objects that
// break other rules cause other errors.
func isBadRequest(err error) bool {
	return err != nil && listwatch.AsError(err).HTTPStatus() == http.StatusBadRequest
}

// hasCreateVersion reports whether meta has a resourceVersion, which is an error in a
// create.
func hasCreateVersion(meta map[string]any) bool {
	raw, replaced := meta["resourceVersion"].(json.RawMessage)
	return replaced && raw[0] == '"' && string(raw) != `""` && string(raw) != `"0"`
}

// hasOtherKey reports whether meta does not match the key of the stored object.
func hasOtherKey(meta map[string]any) bool {
	namespace, exists := meta["namespace"]
	return meta["name"] != any("a") || exists && namespace != any("n")
}
