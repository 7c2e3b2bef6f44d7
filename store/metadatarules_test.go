package store_test

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
)

// The expected results are the results of Kubernetes' generic API server.
func TestMetadataIsNormalizedAsInKubernetes(t *testing.T) {
	for _, c := range []struct {
		name, metadata, want string
	}{
		{"null label", `"labels":{"a":null,"b":"c"}`, `"labels":{"a":"","b":"c"}`},
		{"null annotation", `"annotations":{"a":null}`, `"annotations":{"a":""}`},
		{"empty maps", `"labels":{},"annotations":{}`, ``},
		{"null maps", `"labels":null,"annotations":null`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			pods, _ := newPods()
			o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n",`+c.metadata+`}}`)
			want := `"name":"a","namespace":"n",` + c.want
			if c.want == "" {
				want += `"uid":`
			}
			if !strings.Contains(string(o.Data), want) {
				t.Errorf("got %s, want %s", o.Data, want)
			}
		})
	}
}

func TestNullLabelOfPlainObjectIsNoWrite(t *testing.T) {
	pods, backend := newPods()
	old := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	o, err := pods.Replace(t.Context(), keyA, []byte(`{"metadata":{"name":"a","namespace":"n","labels":{}}}`))
	if err != nil || o.Version != old.Version || backend.commits != 1 {
		t.Errorf("got %+v, error %v after %d commits, want no write", o, err, backend.commits)
	}
}

func TestInvalidMetadataHasCausesOfKubernetes(t *testing.T) {
	const event = `"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]`
	for _, c := range []struct {
		name, object, kubernetesName string
		causes                       []string
	}{
		{"Event as owner", `{"metadata":{"name":"a",` + event + `}}`, "a", []string{"metadata.ownerReferences[0]"}},
		{
			"two deletion finalizers", `{"metadata":{"name":"a","finalizers":["orphan","foregroundDeletion"]}}`, "a",
			[]string{"metadata.finalizers"},
		},
		{"no metadata", `{"spec":{}}`, "", []string{"metadata.name"}},
		{"null metadata", `{"metadata":null}`, "", []string{"metadata.name"}},
		{
			"generateName beside a name", `{"metadata":{"name":"a","generateName":"AB-"}}`, "a",
			[]string{"metadata.generateName"},
		},
		{
			"generateName that ends with a dot", `{"metadata":{"name":"a","generateName":"a."}}`, "a",
			[]string{"metadata.generateName"},
		},
		{
			"generateName", `{"metadata":{"generateName":"AB-"}}`, "AB-",
			[]string{"metadata.generateName", "metadata.name"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			pods, backend := newPods()
			_, err := pods.CreateIn(t.Context(), "n", []byte(c.object))
			e := testkit.WantStatus(t, c.object, err, 422)
			if e.Details == nil || !strings.HasPrefix(e.Details.Name, c.kubernetesName) {
				t.Fatalf("got %v with details %+v, want %q", err, e.Details, c.kubernetesName)
			}
			if backend.commits != 0 {
				t.Errorf("got %d commits, want none", backend.commits)
			}
			var fields []string
			for _, cause := range e.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if strings.Join(fields, " ") != strings.Join(c.causes, " ") {
				t.Errorf("got causes %q, want %q", fields, c.causes)
			}
		})
	}
}

func TestDeletionMarksCannotBeWritten(t *testing.T) {
	const at = `"2030-01-01T00:00:00Z"`
	for _, c := range []struct {
		name, finalizers, metadata, cause string
		deleted                           bool
	}{
		{"timestamp", `[]`, `"deletionTimestamp":` + at, "metadata.deletionTimestamp", false},
		{"grace period", `[]`, `"deletionGracePeriodSeconds":5`, "metadata.deletionGracePeriodSeconds", false},
		{
			"grace period of a deleted object", `["x.io/y"]`, `"deletionGracePeriodSeconds":5`,
			"metadata.deletionGracePeriodSeconds", true,
		},
		{"timestamp of a deleted object", `["x.io/y"]`, `"deletionTimestamp":` + at, "", true},
		{"no timestamp of a deleted object", `["x.io/y"]`, `"labels":{"a":"b"}`, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pods, _ := newPods()
			mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n","finalizers":`+c.finalizers+`}}`)
			if c.deleted {
				if _, err := pods.Delete(t.Context(), keyA, listwatch.Preconditions{}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := pods.Replace(t.Context(), keyA,
				[]byte(`{"metadata":{"name":"a","finalizers":`+c.finalizers+`,`+c.metadata+`}}`))
			switch e := listwatch.AsError(err); {
			case c.cause == "" && err != nil:
				t.Errorf("got %v, want success", err)
			case c.cause != "" && (e == nil || e.HTTPStatus() != 422 || e.Details.Causes[0].Field != c.cause):
				t.Errorf("got %v, want 422 for %s", err, c.cause)
			}
		})
	}
}

// If the namespace were dropped, objects of different namespaces would have the same key.
func TestNamespaceIsRefusedWhereNoneExists(t *testing.T) {
	nodes, _ := newCollection(store.CollectionSpec{Kind: "Node"})
	a := mustCreate(t, nodes, `{"metadata":{"name":"a"}}`)
	data := []byte(`{"metadata":{"name":"a","namespace":"n"}}`)
	_, errCreate := nodes.Create(t.Context(), data)
	_, errReplace := nodes.Replace(t.Context(), a.Key, data)
	_, errUpdate := nodes.Update(t.Context(), a.Key, listwatch.Preconditions{}, replaceWith(string(data)))
	for _, err := range []error{errCreate, errReplace, errUpdate} {
		wantCode(t, err, listwatch.Invalid, `metadata.namespace is "n", but nodes have no namespaces`)
	}
}

func TestClusterWideObjectCanLoseItsNamespace(t *testing.T) {
	nodes, _ := newCollection(store.CollectionSpec{Kind: "Node", DropNamespace: true})
	o := mustCreate(t, nodes, `{"metadata":{"name":"a","namespace":"n"}}`)
	if o.Key.Namespace != "" || strings.Contains(string(o.Data), "namespace") {
		t.Errorf("got %+v %s, want no namespace", o.Key, o.Data)
	}
}

func TestNameConflictBesideGenerateNameIsRetriable(t *testing.T) {
	pods, _ := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	_, err := pods.Create(t.Context(), []byte(`{"metadata":{"name":"a","namespace":"n","generateName":"b-"}}`))
	wantCode(t, err, listwatch.AlreadyExists, "")
	if listwatch.AsError(err).RetryAfter() == 0 {
		t.Errorf("%v has no time to retry", err)
	}
}

func TestDryRunCreateHasNoVersion(t *testing.T) {
	for _, object := range []string{
		`{"metadata":{"name":"a","namespace":"n"}}`, `{"metadata":{"resourceVersion":"","name":"a","namespace":"n"}}`,
		`{"metadata":{"name":"a","namespace":"n","resource\u0056ersion":"0"}}`,
	} {
		pods, _ := newPods()
		o, err := pods.DryRun().Create(t.Context(), []byte(object))
		if err != nil || metadata(o, "resourceVersion") != "" || metadata(o, "uid") == "" {
			t.Errorf("%s: got %v, error %v, want no version", object, o, err)
		}
	}
}
