package clientgo

import (
	"slices"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// warnings collects what the server warns of.
type warnings []string

func (w *warnings) HandleWarningHeader(code int, agent, text string) {
	if code == 299 && agent == "-" {
		*w = append(*w, text)
	}
}

func TestClientsAreWarnedOfMembersThatComeTwice(t *testing.T) {
	overEach(t, func(t *testing.T, p kubetest.Protocol) {
		s := kubetest.Start(t)
		var told warnings
		config := s.Config(p)
		config.WarningHandler = &told
		pods := typed(t, config).CoreV1().Pods("one")
		if _, err := pods.Create(t.Context(), pod("a", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		twice := []byte(`{"spec":{"a\"é":1,"a\"é":2}}`)
		if _, err := pods.Patch(t.Context(), "a", types.MergePatchType, twice, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		if want := []string{`duplicate field "spec.a\"\u00e9"`}; !slices.Equal(told, want) {
			t.Errorf("got the warnings %q, want %q", told, want)
		}
		_, err := pods.Patch(t.Context(), "a", types.MergePatchType, twice, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
		wantKind(t, err, "BadRequest")
	})
}

// One object that could not be decoded would make the lists of all typed clients fail.
func TestWhateverWasTriedListsCanBeDecoded(t *testing.T) {
	overEach(t, func(t *testing.T, p kubetest.Protocol) {
		s := kubetest.Start(t)
		client := typed(t, s.Config(p))
		pods := client.CoreV1().Pods("one")
		if _, err := pods.Create(t.Context(), pod("a", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, odd := range []string{
			`{"metadata":{"name":"a","ownerReferences":"x"}}`, `{"metadata":{"name":"a","managedFields":[{"time":7}]}}`, `{"metadata":{"name":"a","generation":1.5}}`, `{"metadata":{"name":"a"},"spec":7}`,
			`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","ports":[{"containerPort":"80"}]}]}}`, `{"metadata":{"name":"a"},"status":{"startTime":"soon"}}`,
		} {
			_, err := pods.Patch(t.Context(), "a", types.MergePatchType, []byte(odd), metav1.PatchOptions{})
			wantKind(t, err, "Invalid")
			_, err = pods.Patch(t.Context(), "a", types.MergePatchType, []byte(odd), metav1.PatchOptions{}, "status")
			wantKind(t, err, "Invalid")
			post := client.CoreV1().RESTClient().Post().Namespace("one").Resource("pods").SetHeader("Content-Type", "application/json")
			wantKind(t, post.Body([]byte(odd)).Do(t.Context()).Error(), "BadRequest")
		}
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("got %d pods, %v, want the one", len(list.Items), err)
		}
	})
}
