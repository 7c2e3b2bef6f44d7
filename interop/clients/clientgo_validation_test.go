package clients

import (
	"slices"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/testapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// warnings collects the server's warnings.
type warnings []string

func (w *warnings) HandleWarningHeader(code int, agent, text string) {
	if code == 299 && agent == "-" {
		*w = append(*w, text)
	}
}

func TestFieldValidationCausesWarnings(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := testapi.Start(t)
		var got warnings
		config := s.Config(p)
		config.WarningHandler = &got
		pods := newClientset(t, config).CoreV1().Pods("one")
		if _, err := pods.Create(t.Context(), pod("a", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		invalid := []byte(`{"spec":{"a\"é":1,"a\"é":2}}`)
		if _, err := pods.Patch(t.Context(), "a", types.MergePatchType, invalid, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		if want := []string{
			`duplicate field "spec.a\"\u00e9"`,
			`unknown field "spec.a\"\u00e9"`,
		}; !slices.Equal(got, want) {
			t.Errorf("got warnings %q, want %q", got, want)
		}
		_, err := pods.Patch(t.Context(), "a", types.MergePatchType, invalid,
			metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
		wantError(t, err, "Invalid")
	})
}

// A stored object that cannot be decoded would make the lists of all typed clients fail.
func TestInvalidWritesNeverBreakLists(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := testapi.Start(t)
		client := newClientset(t, s.Config(p))
		pods := client.CoreV1().Pods("one")
		if _, err := pods.Create(t.Context(), pod("a", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, invalid := range []string{
			`{"metadata":{"name":"a","ownerReferences":"x"}}`, `{"metadata":{"name":"a","managedFields":[{"time":7}]}}`,
			`{"metadata":{"name":"a","generation":1.5}}`, `{"metadata":{"name":"a"},"spec":7}`,
			`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","ports":[{"containerPort":"80"}]}]}}`,
			`{"metadata":{"name":"a"},"status":{"startTime":"soon"}}`,
		} {
			_, err := pods.Patch(t.Context(), "a", types.MergePatchType, []byte(invalid), metav1.PatchOptions{})
			wantError(t, err, "Invalid")
			_, err = pods.Patch(t.Context(), "a", types.MergePatchType, []byte(invalid), metav1.PatchOptions{},
				"status")
			wantError(t, err, "Invalid")
			post := client.CoreV1().RESTClient().Post().Namespace("one").Resource("pods").SetHeader("Content-Type",
				"application/json")
			wantError(t, post.Body([]byte(invalid)).Do(t.Context()).Error(), "BadRequest")
		}
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("got %d pods, error %v, want one pod", len(list.Items), err)
		}
	})
}
