package accessreview

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzParse(f *testing.F) {
	f.Add(
		[]byte(
			`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`))
	f.Add([]byte(`{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(Kind, data)
		if (r == nil) == (err == nil) {
			t.Fatalf("got review %v and error %v", r, err)
		}
		if err != nil {
			return
		}
		if (r.Resource == nil) == (r.Path == nil) {
			t.Errorf("got %+v, want one of the two", r)
		}
		response, err := json.Marshal(r.Response(true, ""))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(Kind, response)
		if err != nil {
			t.Fatalf("the response %s to %s: %v", response, data, err)
		}
		if diff := cmp.Diff([]any{r.Path, r.Resource}, []any{again.Path, again.Resource}); diff != "" {
			t.Errorf("the response %s has another spec than %s (-request +response):\n%s", response, data, diff)
		}
	})
}

func FuzzParseRules(f *testing.F) {
	f.Add(
		[]byte(
			`{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","spec":{"namespace":"default"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(RulesKind, data)
		if (r == nil) == (err == nil) {
			t.Fatalf("got review %v and error %v", r, err)
		}
		if err == nil && r.Namespace == "" {
			t.Errorf("got a review without a namespace from %q", data)
		}
	})
}
