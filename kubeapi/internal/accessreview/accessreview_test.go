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
	f.Add([]byte(`{"spec":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(Kind, "", data)
		if (r == nil) == (err == nil) {
			t.Fatalf("got review %v and error %v", r, err)
		}
		if err != nil {
			return
		}
		if (r.Spec.ResourceAttributes == nil) == (r.Spec.NonResourceAttributes == nil) {
			t.Errorf("got %+v, want one of the two", r)
		}
		response, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(Kind, "", response)
		if err != nil {
			t.Fatalf("the response %s to %s: %v", response, data, err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("the response %s has another spec than %s (-request +response):\n%s", response, data, diff)
		}
	})
}

func FuzzParseRules(f *testing.F) {
	f.Add(
		[]byte(
			`{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","spec":{"namespace":"default"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if namespace, err := ParseRules(data); (namespace == "") == (err == nil) {
			t.Fatalf("got the namespace %q and error %v", namespace, err)
		}
	})
}
