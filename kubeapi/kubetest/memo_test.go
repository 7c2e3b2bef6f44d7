package kubetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// sizes is a policy against widgets of one size.
const sizes = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [demo.example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  validations: [{expression: '!has(object.spec.size) || object.spec.size != %d'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sizes}
spec: {policyName: sizes, validationActions: [Deny]}
`

// startWithLimit starts a cluster in which widgets have the given limit by default, and may not
// have it as their size. All these clusters have the same names of files, definitions and policies.
func startWithLimit(t *testing.T, limit int64) *cluster {
	t.Helper()
	text := string(testkit.Must(os.ReadFile("testdata/crds/widgets.yaml"))(t))
	const old = "limit: {type: integer, default: 10}"
	if !strings.Contains(text, old) {
		t.Fatalf("the definition lacks %q", old)
	}
	text = strings.Replace(text, old, fmt.Sprintf("limit: {type: integer, default: %d}", limit), 1)
	file := filepath.Join(t.TempDir(), "widgets.yaml")
	if err := os.WriteFile(file, fmt.Append([]byte(text+"---"), fmt.Sprintf(sizes, limit)), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, kubetest.Options{CRDs: []string{file}, Webhooks: []string{file}})
}

// wantLimit checks that only limit is the limit of widgets by default, and that no widget can have
// size as its size.
func (c *cluster) wantLimit(t *testing.T, limit, size int64) {
	t.Helper()
	create := func(spec map[string]any) (*unstructured.Unstructured, error) {
		spec["color"] = "red"
		w := widget(spec)
		w.SetName("")
		w.SetGenerateName("w-")
		return c.widgets().Create(t.Context(), w, metav1.CreateOptions{})
	}
	w := testkit.Must(create(map[string]any{"replicas": limit}))(t)
	if got, _, _ := unstructured.NestedInt64(w.Object, "spec", "limit"); got != limit {
		t.Errorf("got the limit %d by default, want %d", got, limit)
	}
	if _, err := create(map[string]any{"replicas": limit + 1}); !apierrors.IsInvalid(err) {
		t.Errorf("got %v above the limit %d, want it to be invalid", err, limit)
	}
	for _, other := range []int64{10, 20, 30} {
		if _, err := create(map[string]any{"size": other}); apierrors.IsInvalid(err) != (other == size) {
			t.Errorf("got %v for the size %d, want only %d to be refused", err, other, size)
		}
	}
}

// TestEnvsWithDifferentDefinitionsStayApart checks that Envs share the parsed files, schemas and
// policies only with Envs that have the same ones.
func TestEnvsWithDifferentDefinitionsStayApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := []int64{10, 20, 30, 10}
		var all []*cluster
		for _, limit := range limits {
			all = append(all, startWithLimit(t, limit))
		}
		for range 2 {
			for i, c := range all {
				c.wantLimit(t, limits[i], limits[i])
			}
		}
		const change = `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/` +
			`limit/default","value":15}]`
		testkit.Must(all[0].dynamic.Resource(definitions).Patch(t.Context(), "widgets.demo.example.com",
			types.JSONPatchType, []byte(change), metav1.PatchOptions{}))(t)
		all[0].wantLimit(t, 15, 10)
		all[3].wantLimit(t, 10, 10)
		startWithLimit(t, 10).wantLimit(t, 10, 10)
	})
}
