package schema

import (
	"slices"
	"testing"
)

func TestUnknownFieldsHavePaths(t *testing.T) {
	pod := Kubernetes("io.k8s.api.core.v1.Pod")
	for doc, want := range map[string][]string{
		`{"spec":{"nodeName":"n","nodeSelector":{"any":"x"}},"metadata":{"labels":{"a":"b"}}}`: nil,
		`{"spec":{"contaners":[],"containers":[{"name":"a"},{"imag":1}]},"m\u0065":1}`: {
			"spec.contaners",
			"spec.containers[1].imag", "me",
		},
		`{"metadata":{"label":{}}}`:                        {"metadata.label"},
		`{"metadata":{"label":{},"labels":7,"labelz":{}}}`: {"metadata.label", "metadata.labelz"},
		`7`: nil,
	} {
		if got := pod.Unknown([]byte(doc)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
		if got, err := pod.Check([]byte(doc)); err == nil && !slices.Equal(got, want) {
			t.Errorf("%s: Check: got %q, want %q", doc, got, want)
		}
	}
	if got := (*Type)(nil).Unknown([]byte(`{"a":1}`)); got != nil {
		t.Errorf("without a schema: got %q", got)
	}
}
