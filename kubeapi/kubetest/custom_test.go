package kubetest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var walls = schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "walls"}

// walls returns the objects of the kind that wallDefinition defines.
func (c *cluster) walls() dynamic.NamespaceableResourceInterface { return c.dynamic.Resource(walls) }

// wallDefinition returns the path of a file with the definition of the cluster-wide kind Wall.
// version holds the version's members in YAML's flow style, such as the schema.
func wallDefinition(t *testing.T, version string) string {
	t.Helper()
	return wallDefinitionOf(t, "name: v1, served: true, storage: true, "+version)
}

func wallDefinitionOf(t *testing.T, versions ...string) string {
	t.Helper()
	text := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: walls.demo.example.com}
spec:
  group: demo.example.com
  scope: Cluster
  names: {plural: walls, kind: Wall}
  versions:
  - {` + strings.Join(versions, "}\n  - {") + "}\n"
	path := filepath.Join(t.TempDir(), "wall.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wallSpec returns the version of a definition with the given properties of spec.
func wallSpec(properties string) string {
	return "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" +
		properties + "}}}}}"
}

func wall(spec string) []byte {
	return []byte(`{"apiVersion":"demo.example.com/v1","kind":"Wall","metadata":{"name":"w"},"spec":` + spec + `}`)
}

// decodeWall returns the object in wall(spec).
func decodeWall(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := json.Unmarshal(wall(spec), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &u
}

// specOf returns the spec of an object as JSON, with sorted members.
func specOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(u.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (c *cluster) applyWall(t *testing.T, manager, spec string) (*unstructured.Unstructured, error) {
	t.Helper()
	return c.walls().Patch(t.Context(), "w", types.ApplyPatchType, wall(spec),
		metav1.PatchOptions{FieldManager: manager})
}

func TestApplyKnowsTheDefaultsOfKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		first := testkit.Must(c.applyWall(t, "x", `{"ports":[{"port":80}]}`))(t)
		again := testkit.Must(c.applyWall(t, "x", `{"ports":[{"port":80}]}`))(t)
		if first.GetResourceVersion() != again.GetResourceVersion() {
			t.Errorf("the second apply has changed %v to %v", first, again)
		}
		testkit.Must(c.applyWall(t, "x", `{"ports":[{"port":80,"name":"web"}]}`))(t)
		both := testkit.Must(c.applyWall(t, "y", `{"ports":[{"port":80,"open":true}]}`))(t)
		const open, closed = `{"open":true,"port":80,"protocol":"TCP"}`,
			`{"name":"web","open":false,"port":80,"protocol":"TCP"}`
		if got, want := specOf(t, both), `{"ports":[`+closed+`,`+open+`]}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := specOf(t, testkit.Must(c.applyWall(t, "x", `{}`))(t)), `{"ports":[`+open+`]}`; got != want {
			t.Errorf("after x has removed its element: got %s, want %s", got, want)
		}
	}, kubetest.Options{CRDs: []string{wallDefinition(t, wallSpec(
		`ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol, open], items: {type: object, required: [port],
           properties: {port: {type: integer}, name: {type: string}, protocol: {type: string, default: TCP}, open: {type: boolean, default: false}}}}`,
	))}})
}

func TestLaterApplyOfDefaultsInElementsWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		const spec = `{"groups":[{"name":"a"}]}`
		first := testkit.Must(c.applyWall(t, "x", spec))(t)
		time.Sleep(2 * time.Second) // the managers have a time in seconds
		again := testkit.Must(c.applyWall(t, "x", spec))(t)
		if first.GetResourceVersion() != again.GetResourceVersion() {
			t.Errorf("the second apply has changed %v to %v", first, again)
		}
		changed := testkit.Must(c.applyWall(t, "x", `{"groups":[{"name":"b"}]}`))(t)
		if got, want := specOf(t, changed), `{"groups":[{"hosts":1,"name":"b"}]}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		other := testkit.Must(c.applyWall(t, "y", `{"groups":[{"name":"b","hosts":1}]}`))(t)
		if got := len(other.GetManagedFields()); got != 2 {
			t.Errorf("after an apply by another manager there are %d managers, want 2", got)
		}
	}, kubetest.Options{CRDs: []string{wallDefinition(t, wallSpec(
		"groups: {type: array, items: {type: object, properties: {name: {type: string}, hosts: {type: integer, default: 1}}}}",
	))}})
}

func TestApplyStoresNoUnknownFields(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for range 2 {
			applied := testkit.Must(c.applyWall(t, "x", `{"parts":[{"a":1}]}`))(t)
			if got, want := specOf(t, applied), `{"parts":[{}]}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}, kubetest.Options{CRDs: []string{wallDefinition(t, wallSpec("parts: {type: array, items: {type: object}}"))}})
}

func TestApplyRefusesNulls(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, spec := range []string{`{"part":null}`, `{"parts":[{"name":"a","size":null}]}`} {
			_, err := c.applyWall(t, "x", spec)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "in body must be of type") ||
				!strings.Contains(err.Error(), "rules were not checked") {
				t.Errorf("apply of %s: got %v, want a type error, and no check of the rules", spec, err)
			}
		}
		const filled = `{"open":false,"other":null,"parts":[{"name":"a"}]}`
		applied := testkit.Must(c.applyWall(t, "x", `{"other":null,"open":null,"parts":[{"name":"a"}]}`))(t)
		if got := specOf(t, applied); got != filled {
			t.Errorf("apply: got %s, want %s", got, filled)
		}
		if err := c.walls().Delete(t.Context(), "w", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		created := testkit.Must(c.walls().Create(t.Context(),
			decodeWall(t, `{"part":null,"parts":[{"name":"a","size":null}],"other":null,"open":null}`),
			metav1.CreateOptions{}))(t)
		if got := specOf(t, created); got != filled {
			t.Errorf("create: got %s, want %s", got, filled)
		}
	}, kubetest.Options{CRDs: []string{wallDefinition(t, wallSpec(
		`part: {type: object, properties: {}}, open: {type: boolean, default: false}, other: {type: string, nullable: true},
         parts: {type: array, items: {type: object, properties: {name: {type: string, x-kubernetes-validations: [{rule: self != ""}]}, size: {type: integer}}}}`,
	))}})
}

func TestEstablishedMeansServed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		conditions := func(name string) string {
			d := testkit.Must(c.dynamic.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{}))(t)
			text, err := json.Marshal(d.Object["status"])
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if got := conditions("walls.demo.example.com"); strings.Count(got, `"status":"True"`) != 2 ||
			!strings.Contains(got, `"storedVersions":["match"]`) {
			t.Errorf("got the status %s, want two conditions", got)
		}
		match := walls
		match.Version = "match"
		w := decodeWall(t, `{"a":1}`)
		w.SetAPIVersion("demo.example.com/match")
		testkit.Must(c.dynamic.Resource(match).Create(t.Context(), w, metav1.CreateOptions{}))(t)
		second := testkit.Must(c.dynamic.Resource(definitions).Get(t.Context(), "walls.demo.example.com",
			metav1.GetOptions{}))(t)
		second.SetName("fences.demo.example.com")
		second.SetResourceVersion("")
		_ = unstructured.SetNestedField(second.Object, "fences", "spec", "names", "plural")
		testkit.Must(c.dynamic.Resource(definitions).Create(t.Context(), second, metav1.CreateOptions{}))(t)
		if got := conditions("fences.demo.example.com"); strings.Count(got, `"status":"False"`) != 2 ||
			!strings.Contains(got, `\"WallList\" is already in use`) {
			t.Errorf("got the status %s, want neither condition, and the name in use", got)
		}
		testkit.Must(c.dynamic.Resource(match).List(t.Context(), metav1.ListOptions{}))(t)
	},
		kubetest.Options{CRDs: []string{wallDefinitionOf(t,
			"name: match, served: true, storage: true, "+wallSpec("a: {type: integer}"))}})
}

func TestEmbeddedResourcesAreCheckedAndPruned(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for spec, want := range map[string]string{
			`{"template":{}}`:                                  "spec.template.kind: Required value",
			`{"template":{"kind":"Pod"}}`:                      "spec.template.apiVersion: Required value",
			`{"template":{"apiVersion":"v1"}}`:                 "spec.template.kind: Required value",
			`{"template":{"apiVersion":"v1","kind":"?"}}`:      "spec.template.kind: Invalid value",
			`{"template":{"apiVersion":"v1","kind":7}}`:        "string",
			`{"list":[{"apiVersion":"v1"}]}`:                   "spec.list[0].kind: Required value",
			`{"template":{"apiVersion":"a/b/c","kind":"Pod"}}`: "spec.template.apiVersion: Invalid value",
		} {
			_, err := c.walls().Create(t.Context(), decodeWall(t, spec), metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("create of %s: got %v, want %q", spec, err, want)
			}
			if _, err := c.applyWall(t, "x", spec); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("apply of %s: got %v, want %q", spec, err, want)
			}
		}
		const kept = `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},"spec":{"x":1}}`
		given := strings.Replace(kept, `"labels"`, `"nonsense":"x","creationTimestamp":null,"labels"`, 1)
		w := testkit.Must(c.walls().Create(t.Context(), decodeWall(t, `{"template":`+given+`}`),
			metav1.CreateOptions{}))(t)
		if got, want := specOf(t, w), `{"template":`+kept+`}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}, kubetest.Options{CRDs: []string{wallDefinition(t, wallSpec(
		"template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}, "+
			"list: {type: array, items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}",
	))}})
}
