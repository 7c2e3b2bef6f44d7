package store_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

var uidOf = regexp.MustCompile(`"uid":"([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"`)

// maskUID replaces the random uid in data with UID. data must contain a uid.
func maskUID(t testing.TB, data []byte) string {
	t.Helper()
	if len(uidOf.FindAll(data, -1)) != 1 {
		t.Errorf("%s: want one random uid", data)
	}
	return string(uidOf.ReplaceAll(data, []byte(`"uid":"UID"`)))
}

func TestCreateSetsMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fake time starts at midnight, 2000-01-01 UTC
		const set = `"uid":"UID","resourceVersion":"1","generation":1,"creationTimestamp":"2000-01-01T00:00:00Z"`
		for name, c := range map[string]struct{ in, want string }{
			"absent metadata is added last, kind and apiVersion first": {
				`{"spec":{},"metadata":{"namespace":"n","name":"a","labels":{"l":"v"}}}`,
				`{"kind":"Pod","apiVersion":"v1","spec":{},"metadata":{"namespace":"n","name":"a","labels":{"l":"v"},` +
					set + `}}`,
			},
			"existing members are replaced in place": {
				`{"metadata":{"creationTimestamp":null,"generation":77,"name":"a","resourceVersion":"0","uid":"mine","namespace":"n"},"kind":"Pod","apiVersion":"v1"}`,
				`{"metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","generation":1,"name":"a","resourceVersion":"1","uid":"UID","namespace":"n"},"kind":"Pod","apiVersion":"v1"}`,
			},
			"an empty kind is filled in": {
				`{"kind":"","apiVersion":null,"metadata":{"name":"a","namespace":"n"}}`,
				`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n",` + set + `}}`,
			},
			"names keep their spelling": {
				`{"m\u0065tadata":{"n\u0061me":"\u0061","namespace":"n","r\u0065sourceVersion":""}}`,
				`{"kind":"Pod","apiVersion":"v1","m\u0065tadata":{"n\u0061me":"\u0061","namespace":"n","r\u0065sourceVersion":"1","uid":"UID","generation":1,"creationTimestamp":"2000-01-01T00:00:00Z"}}`,
			},
			"unusual numbers and strings are kept, space is removed": {
				" {\n\"metadata\" : {\"name\":\"a\" , \"namespace\":\"n\"},\t\"x\":[9007199254740993, 1e400, -0.0, \"\\u00e9\\/<&> é\", \"\\ud800\"] } ",
				`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n",` + set +
					`},"x":[9007199254740993,1e400,-0.0,"\u00e9\/<&> é","\ud800"]}`,
			},
		} {
			pods, _ := newPods()
			o := mustCreate(t, pods, c.in)
			if diff := cmp.Diff(c.want, maskUID(t, o.Data)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if o.Version != 1 || o.Key != (listwatch.Key{Namespace: "n", Name: "a"}) {
				t.Errorf("%s: got %v at %v, want n/a at 1", name, o.Key, o.Version)
			}
		}
	})
}

func TestCreateReadsLabelsAndFields(t *testing.T) {
	pods, _ := newPods()
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n","labels":{"l":"\u0076"}},
		"spec":{"nodeName":"n\u0031","ready":true,"n":1.50,"list":[1]}}`)
	if diff := cmp.Diff(map[string]string{"l": "v"}, o.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	uid := uidOf.FindSubmatch(o.Data)[1]
	want := map[string]string{
		"spec.nodeName": "n1", "spec.ready": "true", "spec.n": "1.50",
		"metadata.uid": string(uid),
	}
	if diff := cmp.Diff(want, o.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, pods.Spec().ReadFields(o.Data)); diff != "" {
		t.Errorf("fields read again (-want +got):\n%s", diff)
	}
}

func TestCreateRejectsUnreadableObjects(t *testing.T) {
	pods, backend := newPods()
	for name, data := range map[string]string{
		"invalid JSON": `{"metadata":`,
		"a list":       `[]`,
		"two objects":  `{"metadata":{"name":"a","namespace":"n"}}{}`,
		"not UTF-8":    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},\"x\":\"\xc3\"}",
		"nested too deep": `{"metadata":{"name":"a","namespace":"n"},"x":` + strings.Repeat("[", 240) +
			strings.Repeat("]", 240) + `}`,
		"metadata a number":       `{"metadata":7}`,
		"metadata twice":          `{"metadata":{"name":"a","namespace":"n"},"metadata":{"name":"b","namespace":"n"}}`,
		"metadata twice, escaped": `{"metadata":{"name":"a","namespace":"n"},"m\u0065tadata":{"name":"b","namespace":"n"}}`,
		"a resourceVersion":       `{"metadata":{"name":"a","namespace":"n","resourceVersion":"5"}}`,
		"a member twice":          `{"metadata":{"name":"a","namespace":"n"},"spec":[{"x":{"a":1,"b":2,"\u0061":3}}]}`,
		"name twice":              `{"metadata":{"name":"a","name":"b","namespace":"n"}}`,
		"another kind":            `{"kind":"Node","metadata":{"name":"a","namespace":"n"}}`,
		"another apiVersion":      `{"apiVersion":"v2","metadata":{"name":"a","namespace":"n"}}`,
		"kind a number":           `{"kind":1,"metadata":{"name":"a","namespace":"n"}}`,
		"name a number":           `{"metadata":{"name":1,"namespace":"n"}}`,
		"labels a list":           `{"metadata":{"name":"a","namespace":"n","labels":[]}}`,
		"label a number":          `{"metadata":{"name":"a","namespace":"n","labels":{"a":1}}}`,
		"annotation an object":    `{"metadata":{"name":"a","namespace":"n","annotations":{"a":{}}}}`,
		"generateName a number":   `{"metadata":{"generateName":1,"namespace":"n"}}`,
	} {
		_, err := pods.Create(t.Context(), []byte(data))
		testkit.WantStatus(t, name, err, http.StatusBadRequest)
		wantCode(t, err, listwatch.Invalid, "")
	}
	if backend.commits != 0 {
		t.Errorf("%d commits, want none", backend.commits)
	}
}

func TestCreateNamesTheFieldsThatBreakRules(t *testing.T) {
	namespaced, _ := newPods()
	nodes, _ := newCollection(store.CollectionSpec{Kind: "Node", APIVersion: "x.io/v1"})
	for name, c := range map[string]struct {
		collection *store.Collection
		meta       string
		want       string // the reasons and fields of the causes
	}{
		"no name":           {nodes, `{}`, "FieldValueRequired metadata.name"},
		"empty name":        {nodes, `{"name":"","generateName":null}`, "FieldValueRequired metadata.name"},
		"bad name":          {nodes, `{"name":"A"}`, "FieldValueInvalid metadata.name"},
		"name with a slash": {nodes, `{"name":"a/b"}`, "FieldValueInvalid metadata.name"},
		"bad generateName": {
			nodes, `{"generateName":"AB-"}`,
			"FieldValueInvalid metadata.generateName, FieldValueInvalid metadata.name",
		},
		"namespace required": {namespaced, `{"name":"a"}`, "FieldValueRequired metadata.namespace"},
		"bad namespace":      {namespaced, `{"name":"a","namespace":"a.b"}`, "FieldValueInvalid metadata.namespace"},
		"bad labels": {
			nodes, `{"name":"a","labels":{"-":"_"}}`,
			"FieldValueInvalid metadata.labels, FieldValueInvalid metadata.labels",
		},
		"everything": {
			namespaced, `{"labels":{"a":"_"}}`,
			"FieldValueRequired metadata.name, FieldValueRequired metadata.namespace, FieldValueInvalid metadata.labels",
		},
	} {
		_, err := c.collection.Create(t.Context(), []byte(`{"metadata":`+c.meta+`}`))
		e := testkit.WantStatus(t, name, err, http.StatusUnprocessableEntity)
		if e.Code != listwatch.Invalid || e.Reason != "Invalid" || e.Details == nil {
			t.Errorf("%s: got %+v, want code and reason Invalid, and details", name, e)
			continue
		}
		var got []string
		for _, cause := range e.Details.Causes {
			got = append(got, cause.Reason+" "+cause.Field)
		}
		if strings.Join(got, ", ") != c.want || e.Details.Kind != c.collection.Spec().Kind {
			t.Errorf("%s: got causes %q of kind %s, want %q", name, got, e.Details.Kind, c.want)
		}
	}
	_, err := namespaced.Create(t.Context(), []byte(`{"metadata":{}}`))
	wantCode(t, err, listwatch.Invalid,
		`Pod "" is invalid: [metadata.name: Required value: name or generateName is required, metadata.namespace: Required value]`)
}

func TestCheckNameReplacesTheNameRule(t *testing.T) {
	roles, _ := newCollection(store.CollectionSpec{Kind: "Role", CheckName: func(name string) error {
		if strings.HasPrefix(name, "x") {
			return errors.New("must not begin with x")
		}
		return nil
	}})
	mustCreate(t, roles, `{"metadata":{"name":"system:Node Reader_é"}}`)
	for _, name := range []string{"xy", ".", "..", "a/b", "a%2fb"} {
		_, err := roles.Create(t.Context(), []byte(`{"metadata":{"name":"`+name+`"}}`))
		testkit.WantStatus(t, name, err, http.StatusUnprocessableEntity)
	}
}

func TestCreateOfAnExistingNameFails(t *testing.T) {
	c, backend := newCollection(store.CollectionSpec{Kind: "Deployment", APIVersion: "apps/v1"})
	first := mustCreate(t, c, `{"metadata":{"name":"a"}}`)
	_, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`))
	wantCode(t, err, listwatch.AlreadyExists, `deployments.apps "a" already exists`)
	want := &listwatch.Details{Name: "a", Group: "apps", Kind: "deployments"}
	if diff := cmp.Diff(want, listwatch.AsError(err).Details); diff != "" ||
		listwatch.AsError(err).HTTPStatus() != http.StatusConflict {
		t.Errorf("got status %d, details (-want +got):\n%s", listwatch.AsError(err).HTTPStatus(), diff)
	}
	if got, err := c.Get(t.Context(), first.Key); got != first || err != nil || backend.commits != 1 {
		t.Errorf("got %v, %v after %d commits, want the first object unchanged", got, err, backend.commits)
	}
}

func TestCreateGeneratesNames(t *testing.T) {
	c, _ := newCollection(store.CollectionSpec{Kind: "Pod"})
	suffix := regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	for _, meta := range []string{
		`{"generateName":"web-"}`, `{"name":"","generateName":"web-"}`,
		`{"name":null,"generateName":"web-","labels":{}}`,
	} {
		o := mustCreate(t, c, `{"metadata":`+meta+`}`)
		rest, ok := strings.CutPrefix(o.Key.Name, "web-")
		if !ok || !suffix.MatchString(rest) || !strings.Contains(string(o.Data), `"name":"`+o.Key.Name+`"`) {
			t.Errorf("%s: got %s of name %q, want web- and five random characters", meta, o.Data, o.Key.Name)
		}
	}
	long := mustCreate(t, c, `{"metadata":{"generateName":"`+strings.Repeat("a", 100)+`"}}`)
	if len(long.Key.Name) != 63 {
		t.Errorf("got a name of %d characters, want 63", len(long.Key.Name))
	}
	named := mustCreate(t, c, `{"metadata":{"name":"mine","generateName":"web-"}}`)
	if named.Key.Name != "mine" {
		t.Errorf("got name %q, want the given name", named.Key.Name)
	}
}

func TestNamespacesHaveARuleOfTheirOwn(t *testing.T) {
	for name, test := range map[string]struct {
		check    func(string) error
		accepted bool
	}{"DNS labels": {nil, false}, "any": {func(string) error { return nil }, true}} {
		c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
			Namespaced: true, CheckNamespace: test.check,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.CreateIn(t.Context(), "Acme Inc.", []byte(`{"metadata":{"name":"a"}}`))
		if (err == nil) != test.accepted {
			t.Errorf("%s: got %v, want accepted to be %t", name, err, test.accepted)
		}
	}
}

func TestCreateRetriesTakenGeneratedNames(t *testing.T) {
	c, backend := newCollection(store.CollectionSpec{Kind: "Pod"})
	tries := 0
	var names []string
	backend.before = func(change store.Change) { // another writer creates the first three names
		names = append(names, change.Key.Name)
		if tries++; tries <= 3 {
			backend.objects[change.Key] = &listwatch.Object{Key: change.Key}
		}
	}
	o := mustCreate(t, c, `{"metadata":{"generateName":"web-"}}`)
	if tries != 4 || o.Key.Name != names[3] || strings.Count(string(o.Data), `"name":`) != 1 ||
		!strings.Contains(string(o.Data), names[3]) {
		t.Errorf("after %d tries got %s, want the fourth of %v", tries, o.Data, names)
	}

	backend.before = func(change store.Change) { backend.objects[change.Key] = &listwatch.Object{Key: change.Key} }
	_, err := c.Create(t.Context(), []byte(`{"metadata":{"generateName":"web-"}}`))
	wantCode(t, err, listwatch.AlreadyExists, "")
}

func TestCreateInAddsTheNamespace(t *testing.T) {
	pods, _ := newPods()
	o, err := pods.CreateIn(t.Context(), "n", []byte(`{"metadata":{"name":"a"}}`))
	if err != nil || o.Key.Namespace != "n" || !strings.Contains(string(o.Data), `"namespace":"n"`) {
		t.Fatalf("got %v, %v, want the object in n", o, err)
	}
	if _, err = pods.CreateIn(t.Context(), "n", []byte(`{"metadata":{"name":"b","namespace":"n"}}`)); err != nil {
		t.Errorf("the same namespace: got %v", err)
	}
	_, err = pods.CreateIn(t.Context(), "n", []byte(`{"metadata":{"name":"c","namespace":"other"}}`))
	testkit.WantStatus(t, "another namespace", err, http.StatusBadRequest)
	if _, err = pods.CreateIn(t.Context(), `no"good`, []byte(`{"metadata":{"name":"c"}}`)); !errors.Is(err,
		listwatch.Invalid) {
		t.Errorf("a bad namespace: got %v, want code Invalid", err)
	}
}

func TestUIDsDiffer(t *testing.T) {
	c, _ := newCollection(store.CollectionSpec{})
	seen := make(map[string]bool)
	for i := range 100 {
		o := mustCreate(t, c, fmt.Sprintf(`{"metadata":{"name":"a%d"}}`, i))
		uid := string(uidOf.FindSubmatch(o.Data)[1])
		if seen[uid] {
			t.Fatalf("uid %s was used twice", uid)
		}
		seen[uid] = true
	}
}

func TestCollectionSpecDefaults(t *testing.T) {
	for want, r := range map[string]store.CollectionSpec{
		"v1 Object objects":            {},
		"v1 Pod pods":                  {Kind: "Pod"},
		"apps/v1 Policy policies.apps": {APIVersion: "apps/v1", Kind: "Policy", Plural: "policies"},
	} {
		r = r.WithDefaults()
		if got := r.APIVersion + " " + r.Kind + " " + r.QualifiedName(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzCreate(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"n","labels":{"a":"b"}},"spec":{"nodeName":"x"},"a":[1e400]}`))
	f.Add([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"uid":1,"generateName":"x","namespace":"n"}}`))
	// empty labels count as absent
	f.Add([]byte(`{"metadata":{"name":"0","namespace":"0","labels":{}}}`))
	f.Add([]byte(`{"metadata":{"":0,"resourceVersion":[{}],"name":"a","namespace":"n"},"":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _ := newPods()
		o, err := c.Create(t.Context(), data)
		if err != nil {
			if !errors.Is(err, listwatch.Invalid) {
				t.Fatalf("got %v, want code Invalid", err)
			}
			return
		}
		again, err := listwatch.ParseObject(o.Data)
		if err != nil || again.Key != o.Key || again.Version != o.Version || string(again.Data) != string(o.Data) ||
			!maps.Equal(again.Labels, o.Labels) {
			t.Fatalf("%q was stored as %s, which parses as %+v, %v", data, o.Data, again, err)
		}
		same, err := c.Replace(t.Context(), o.Key, o.Data)
		if err != nil || same != o {
			t.Fatalf("replacing %s by itself returned %v, %v", o.Data, same, err)
		}
	})
}

func TestBackendBypassesTheRules(t *testing.T) {
	pods, _ := newPods()
	d := &store.Draft{Key: keyA, Before: []byte(`{"metadata":{"resourceVersion":`), After: []byte(`}}`)}
	if _, err := pods.Backend().Commit(t.Context(), store.Change{Key: keyA, New: d}); err != nil {
		t.Fatal(err)
	}
	o, err := pods.Get(t.Context(), keyA)
	if err != nil || string(o.Data) != `{"metadata":{"resourceVersion":"1"}}` {
		t.Errorf("got %v, %v, want the written bytes unchanged", o, err)
	}
}
