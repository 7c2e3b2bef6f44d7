package accessreview

import (
	"net/http"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
)

// TestFaultsHaveTheCausesOfKubernetes has the fields of the causes. Tests in interop also compare
// the texts with those of a cluster.
func TestFaultsHaveTheCausesOfKubernetes(t *testing.T) {
	const (
		pods = `"resourceAttributes":{"namespace":"n","resource":"pods"}`
		path = `"nonResourceAttributes":{"path":"/"}`
		all  = `"user":"a","resourceAttributes":{"namespace":"n",`
	)
	for _, c := range []struct {
		kind, object string
		want         []string
	}{
		{Kind, `{"spec":{` + pods + `}}`, nil},
		{Kind, `{"spec":{` + path + `}}`, nil},
		{Kind, `{}`, []string{"spec"}},
		{Kind, `{"spec":{` + pods + `,` + path + `}}`, []string{"spec"}},
		{Kind, `{"metadata":{"name":"a"},"spec":{` + path + `}}`, []string{"metadata"}},
		{SubjectKind, `{"spec":{"user":"a",` + pods + `}}`, nil},
		{SubjectKind, `{"spec":{"groups":["a"],` + path + `}}`, nil},
		{SubjectKind, `{"metadata":{"namespace":"n"},"spec":{"user":"a",` + path + `}}`, nil},
		{SubjectKind, `{"spec":{` + pods + `}}`, []string{"spec.user"}},
		{SubjectKind, `{"metadata":{"name":"a"}}`, []string{"spec", "spec.user", "metadata"}},
		{
			SubjectKind, `{"spec":{` + all + `"fieldSelector":{}}}}`,
			[]string{"spec.resourceAttributes.fieldSelector.requirements"},
		},
		{
			SubjectKind,
			`{"spec":{` + all + `"labelSelector":{"rawSelector":"a","requirements":[{"key":"a","operator":"In"}]}}}}`,
			[]string{
				"spec.resourceAttributes.labelSelector.rawSelector",
				"spec.resourceAttributes.labelSelector.requirements[0].values",
			},
		},
		{SubjectKind, `{"spec":{` + all + `"fieldSelector":{"requirements":[{"key":"a","operator":"Newer"}]}}}}`, nil},
		{LocalKind, `{"spec":{"user":"a",` + pods + `}}`, nil},
		{LocalKind, `{"metadata":{"namespace":"n"},"spec":{"user":"a",` + pods + `}}`, nil},
		{LocalKind, `{"spec":{"user":"a","resourceAttributes":{}}}`, []string{"spec.resourceAttributes.namespace"}},
		{LocalKind, `{"spec":{"user":"a",` + path + `}}`, []string{"spec.nonResourceAttributes"}},
	} {
		namespace := ""
		if c.kind == LocalKind {
			namespace = "n"
		}
		_, err := Parse(c.kind, namespace, []byte(c.object))
		if c.want == nil {
			if err != nil {
				t.Errorf("%s %s: got %v", c.kind, c.object, err)
			}
			continue
		}
		var got []string
		if e := listwatch.AsError(err); e.Status == http.StatusUnprocessableEntity {
			for _, cause := range e.Details.Causes {
				got = append(got, cause.Field)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s: got %v with causes for %q, want %q", c.kind, c.object, err, got, c.want)
		}
	}
	_, err := Parse(LocalKind, "n", []byte(`{"metadata":{"namespace":"other"}}`))
	if listwatch.CodeOf(err) != listwatch.Invalid {
		t.Errorf("got %v for a review of another namespace", err)
	}
}
