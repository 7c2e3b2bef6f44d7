package metadata

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// whole is metadata with every member that ObjectMeta has, and one that it has not.
const whole = `{
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

// odd are values to be put in the place of others.
var odd = []string{
	`null`, `true`, `false`, `0`, `-0`, `7`, `-7`, `1.0`, `1.5`, `1e2`, `1e400`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775809`,
	`""`, `"x"`, `"0"`, `"true"`, `"2026-01-02T15:04:05Z"`, `"2026-01-02T15:04:05,5Z"`, `"2026-01-02T15:04:05+23:59"`, `"2026-01-02T15:04:05+24:00"`,
	`"2026-01-02 15:04:05Z"`, `"2026-02-30T15:04:05Z"`, `"2026-01-02T24:00:00Z"`, `"2026-01-02T15:04:05"`, `"2026-01-02T5:04:05Z"`, `"2026-01-02t15:04:05z"`,
	`[]`, `[null]`, `[7]`, `["x"]`, `[[]]`, `[{}]`, `[{"name": 7}]`, `[{"controller": 1}]`, `[{"time": "x"}]`,
	`{}`, `{"a": null}`, `{"a": 7}`, `{"a": "b"}`, `{"a": {}}`, `{"name": "x"}`,
}

// oddPlace returns whole with something odd in one place, and perhaps without a few members.
func oddPlace(t testing.TB, random *rand.Rand) map[string]any {
	t.Helper()
	var meta map[string]any
	if err := json.Unmarshal([]byte(whole), &meta); err != nil {
		t.Fatal(err)
	}
	putOdd(meta, random)
	for _, name := range sorted(meta) {
		if random.IntN(10) == 0 {
			delete(meta, name)
		}
	}
	return meta
}

// putOdd puts something odd in one place of o, if there is any.
func putOdd(o map[string]any, random *rand.Rand) {
	var places []func(any)
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range sorted(v) {
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
		places[random.IntN(len(places))](json.RawMessage(odd[random.IntN(len(odd))]))
	}
}

func sorted(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Property: what can be written can be decoded by a typed client, and what such a client can decode is not taken for unreadable.
func TestMetadataIsAcceptedIfTypedClientsCanDecodeIt(t *testing.T) {
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
	readable := 0
	const runs = 20_000
	for range runs {
		meta := oddPlace(t, random)
		data := encode(t, meta)
		_, _, theirs := decode.Decode(data, nil, &corev1.ConfigMap{})
		if theirs == nil {
			readable++
		}
		if _, ours := c.DryRun().Create(t.Context(), data); refused(ours) != (theirs != nil) && !hasVersion(meta) {
			t.Errorf("create %s:\nwe say %v\nclient-go says %v", data, ours, theirs)
		}
		change := func(*listwatch.Object) ([]byte, error) { return data, nil }
		_, ours := c.DryRun().Update(t.Context(), created.Key, store.Preconditions{}, change)
		if refused(ours) != (theirs != nil) && !renamed(meta) {
			t.Errorf("update %s:\nwe say %v\nclient-go says %v", data, ours, theirs)
		}
	}
	if readable < runs/20 || readable > runs*19/20 {
		t.Errorf("%d of %d can be decoded, want some of both", readable, runs)
	}
}

func encode(t testing.TB, meta map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// refused reports whether err says that the object can't be read; that it breaks rules is another matter.
func refused(err error) bool {
	return err != nil && listwatch.AsError(err).HTTPStatus() == http.StatusBadRequest
}

// hasVersion reports whether meta has a resourceVersion that nothing new may have.
func hasVersion(meta map[string]any) bool {
	raw, isOdd := meta["resourceVersion"].(json.RawMessage)
	return isOdd && raw[0] == '"' && string(raw) != `""` && string(raw) != `"0"`
}

// renamed reports whether meta is of another object than the one that is there.
func renamed(meta map[string]any) bool {
	namespace, there := meta["namespace"]
	return meta["name"] != any("a") || there && namespace != any("n")
}
